"""Several sends and receives that begin together: what a ``P2POp`` holds, and the batches of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import reader_for
from shim.core.work import Batch, Work, finish
from shim.errors import TensorError, UnsupportedError
from shim.frontends.mindspore._arguments import group_of, peer_in
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._groups.group_names import is_world
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place.point_to_point import refuse_gradient_of_sent, refuse_history

_DIRECTIONS = ("isend", "irecv")


class PointToPoint:
    """One send or receive, as it was asked for; *functions* are those that *op* may be besides their names."""

    def __init__(
        self,
        caller: Caller,
        functions: Sequence[Callable[..., Any]],
        op: str | Callable[..., Any],
        tensor: Any,
        peer: int,
        group: str | None,
        tag: int,
    ) -> None:
        if not (isinstance(op, str) and op in _DIRECTIONS) and not any(op is function for function in functions):
            raise caller.explain(ArgumentTypeError(f"op must be isend or irecv, got {op!r}"))
        _check_tensor(caller, tensor)
        check_peer_and_tag(caller, peer, tag)
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag


def _check_tensor(caller: Caller, tensor: Any) -> None:
    """Refuse what is no tensor."""
    try:
        reader_for(type(tensor))
    except TensorError as error:
        raise caller.explain(TensorError(str(error).replace("{role}", "tensor"))) from None


def check_peer_and_tag(caller: Caller, peer: object, tag: object) -> None:
    """Refuse a *peer* that is no int, and every *tag* but 0, of which MindSpore's batches have no other."""
    if not isinstance(peer, int) or isinstance(peer, bool):
        raise caller.explain(ArgumentTypeError(f"peer must be an int, got {type(peer).__name__}"))
    if tag != 0:
        raise caller.explain(UnsupportedError(f"tag must be 0, got {tag!r}"))


def begin(caller: Caller, p2p_op_list: Sequence[Any], kind: type) -> list[CommHandle]:
    """Begin all of *p2p_op_list*, which must be of *kind*, and return one handle for them."""
    group = group_of_all(caller, p2p_op_list, kind)
    works = [_prepared(caller, group, each) for each in p2p_op_list]
    return [CommHandle(finish(Batch(works), True))]


def group_of_all(caller: Caller, p2p_op_list: Sequence[Any], kind: type) -> ProcessGroup:
    """Return the group of *p2p_op_list*, a list of *kind* that is not empty and has but one group."""
    if not isinstance(p2p_op_list, (list, tuple)) or not p2p_op_list:
        raise caller.explain(ArgumentTypeError(f"p2p_op_list must be a list that is not empty, got {p2p_op_list!r}"))
    for each in p2p_op_list:
        if not isinstance(each, kind):
            raise caller.explain(ArgumentTypeError(f"p2p_op_list must hold P2POps, got {type(each).__name__}"))
    names = [each.group for each in p2p_op_list]
    if any(name != names[0] and not (_is_world(name) and _is_world(names[0])) for name in names):
        raise caller.explain(ArgumentTypeError(f"p2p_op_list must have one group, got {', '.join(map(repr, names))}"))
    return group_of(caller, names[0])


def _is_world(name: object) -> bool:
    return name is None or (isinstance(name, str) and is_world(name))


def direction(each: Any) -> str:
    """Return "isend" or "irecv"."""
    return str(each.op if isinstance(each.op, str) else each.op.__name__)


def _prepared(caller: Caller, group: ProcessGroup, each: Any) -> Work:
    peer = peer_in(caller, group, each.peer)
    if direction(each) == "isend":
        refuse_gradient_of_sent(caller, group, each.tensor)
        return calls.send(caller, group, each.tensor, peer)
    refuse_history(caller, group, each.tensor)
    return calls.receive(caller, group, each.tensor, peer)
