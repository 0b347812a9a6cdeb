"""Python objects in paddle: collectives, the same in every version, and the lists that these, sends and receives fill."""

from __future__ import annotations

from typing import Any, NoReturn

from shim.core import objects
from shim.core.callers import Caller
from shim.errors import ArgumentError, NotMemberError
from shim.frontends._paddle.arguments import peer_of, rank_of, refuse
from shim.frontends._paddle.errors import ArgumentTypeError, OutsiderError, RankIndexError, paddle_function
from shim.frontends._paddle.graphs import refuse_in_graphs
from shim.frontends._paddle.groups.group_views import Group, group_of, member_of

_ALL_GATHER = paddle_function(
    "all_gather_object", errors={NotMemberError: OutsiderError}, output="object_list", input="obj"
)
_BROADCAST = paddle_function("broadcast_object_list", output="object_list", input="object_list", root="src")
_SCATTER = paddle_function("scatter_object_list", output="out_object_list", input="in_object_list", root="src")


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Append every rank's *obj*, in the order of the ranks, to *object_list*, whatever is in it already.

    Raises: RuntimeError outside *group*; TypeError for what cannot be pickled.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/all_gather_object_en.html
    """
    return gather_items(_ALL_GATHER, object_list, obj, group)


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """Replace what is in *object_list* by copies of what the world's rank *src* has in its list, which is as long.

    Raises: ValueError for a rank outside the group; TypeError for what cannot be pickled.
    Deviates: *src* keeps its own objects; paddle replaces them by copies.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/broadcast_object_list_en.html
    """
    return broadcast_items(_BROADCAST, object_list, src, group)


def scatter_object_list(
    out_object_list: list[Any], in_object_list: list[Any] | None = None, src: int = 0, group: Group | None = None
) -> None:
    """Leave in *out_object_list* only this rank's place in the *in_object_list* of the world's rank *src*.

    Raises: ValueError for another number of objects than ranks; TypeError where the list is missing, or cannot be pickled.
    Deviates: works in a *group*; paddle waits forever there, because it sends the size to the whole world.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/scatter_object_list_en.html
    """
    return scatter_items(_SCATTER, out_object_list, in_object_list, src, group)


def gather_items(caller: Caller, items: Any, item: Any, group: Any) -> None:
    """Append every rank's *item* to the list *items*."""
    _require_list(caller, group, "output", items)
    items.extend(objects.all_gather(caller, group_of(caller, group), item) or ())


def broadcast_items(caller: Caller, items: Any, src: Any, group: Any) -> None:
    """Replace the list *items* by copies of the world's rank *src*'s."""
    _require_list(caller, group, "output", items)
    root = rank_of(caller, group, "root", src)
    received = objects.broadcast(caller, group_of(caller, group), items, root)
    if received is not None:
        items[:] = received


def scatter_items(caller: Caller, output: Any, items: Any, src: Any, group: Any) -> None:
    """Replace the list *output* by this rank's place in the world's rank *src*'s *items*."""
    _require_list(caller, group, "output", output)
    root = rank_of(caller, group, "root", src)
    members = group_of(caller, group)
    if members.rank == root:
        if not isinstance(items, (list, tuple)):
            _refuse_type(caller, group, "{input} must be a list on the rank that {root} names", items)
        if len(items) != members.size:
            refuse(
                caller,
                group,
                ArgumentError(f"{{input}} must have an object for each rank, {members.size}, got {len(items)}"),
            )
    received = objects.scatter(caller, members, items, root)
    if members.rank >= 0:
        output[:] = [received]


def send_items(caller: Caller, items: Any, dst: Any, group: Any, dst_in_group: Any) -> None:
    """Send the objects in *items* to the world's rank *dst*, or to the group's rank *dst_in_group*."""
    members = group_of(caller, group)
    peer = _peer_of(caller, group, "dst", dst, dst_in_group)
    _require_items(caller, group, items)
    objects.send(caller, members, items, peer)


def receive_items(caller: Caller, items: Any, src: Any, group: Any, src_in_group: Any) -> None:
    """Replace the list *items* by as many objects from the world's rank *src*, or from the group's rank *src_in_group*."""
    _require_items(caller, group, items)
    peer = _peer_of(caller, group, "src", src, src_in_group)
    received = objects.receive(caller, group_of(caller, group), len(items), peer)
    if received is not None:
        items[:] = received.items


def _peer_of(caller: Caller, group: Any, name: str, world_rank: Any, group_rank: Any) -> int:
    """Return the group rank of whichever of the two is given; the world's rank 0 when neither is."""
    view = member_of(caller, group)
    if group_rank is None or not view.is_member():
        return peer_of(caller, group, 0 if world_rank is None else world_rank)
    if world_rank is not None:
        raise caller.explain(
            ArgumentError(f"{name} and {name}_in_group must not both be given, got {world_rank!r} and {group_rank!r}"),
            group_of(caller, group),
        )
    return peer_of(caller, group, _world_rank(caller, group, f"{name}_in_group", group_rank))


def _world_rank(caller: Caller, group: Any, name: str, group_rank: Any) -> int:
    members = group_of(caller, group)
    if type(group_rank) is not int or not 0 <= group_rank < members.size:
        raise caller.explain(RankIndexError(f"{name} must be in 0..{members.size - 1}, got {group_rank!r}"), members)
    return members.ranks[group_rank]


def _require_items(caller: Caller, group: Any, items: Any) -> None:
    refuse_in_graphs(caller)
    members = group_of(caller, group)
    if items is None or (isinstance(items, list) and not items):
        raise caller.explain(ArgumentError(f"object_list must have at least one object, got {items!r}"), members)
    if not isinstance(items, list):
        raise caller.explain(ArgumentTypeError(f"object_list must be a list, got {items!r}"), members)


def _require_list(caller: Caller, group: Any, role: str, items: Any) -> None:
    refuse_in_graphs(caller)
    if not isinstance(items, list):
        _refuse_type(caller, group, f"{{{role}}} must be a list", items)


def _refuse_type(caller: Caller, group: Any, what: str, got: Any) -> NoReturn:
    refuse(caller, group, ArgumentTypeError(f"{what}, got {got!r}"))
