"""Lists of Python objects that are filled by collectives, sends and receives."""

from __future__ import annotations

from typing import Any, NoReturn

from shim.core import objects
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends._paddle.arguments import peer_of, rank_of, refuse
from shim.frontends._paddle.errors import ArgumentTypeError, RankIndexError
from shim.frontends._paddle.groups.group_views import group_of, member_of

__all__ = ["broadcast_items", "gather_items", "receive_items", "scatter_items", "send_items"]


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
    members = group_of(caller, group)
    if items is None or (isinstance(items, list) and not items):
        raise caller.explain(ArgumentError(f"object_list must have at least one object, got {items!r}"), members)
    if not isinstance(items, list):
        raise caller.explain(ArgumentTypeError(f"object_list must be a list, got {items!r}"), members)


def _require_list(caller: Caller, group: Any, role: str, items: Any) -> None:
    if not isinstance(items, list):
        _refuse_type(caller, group, f"{{{role}}} must be a list", items)


def _refuse_type(caller: Caller, group: Any, what: str, got: Any) -> NoReturn:
    refuse(caller, group, ArgumentTypeError(f"{what}, got {got!r}"))
