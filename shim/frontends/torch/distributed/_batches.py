"""Sends and receives that begin together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shim.core import calls, groups, work
from shim.core.engines.base import Tensor
from shim.core.tensors import reader_for
from shim.errors import ArgumentError, TensorError
from shim.frontends.torch._calls.arguments import partner_of, tag_of
from shim.frontends.torch._calls.work import Work
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import SlotsMissingError, torch_function
from shim.frontends.torch._groups.group_arguments import group_of, is_outsider, view_of
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch.distributed._point_to_point import irecv, isend

__all__ = ["P2POp", "batch_isend_irecv", "start_all"]

_P2P_OP = torch_function("P2POp", input="tensor", output="tensor", root="peer", peer="peer")
_BATCH = torch_function("batch_isend_irecv", input="tensor", output="tensor", root="peer", peer="peer")


class P2POp:
    """One send or receive for ``batch_isend_irecv``: *op* is isend or irecv, *peer* a rank of the world.

    *group_peer* names the rank in *group* instead; *tag* must be the same on both sides.
    Raises: ValueError for another *op*, and unless exactly one of *peer* and *group_peer* is given.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.P2POp
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        members = group_of(_P2P_OP, group)
        if op not in (isend, irecv):
            raise _P2P_OP.explain(ArgumentError(f"op must be isend or irecv of this module, got {op!r}"), members)
        _check_tensor(members, tensor)
        self.op = op
        self.tensor = tensor
        self.group = group if is_outsider(group) else view_of(_P2P_OP, group)
        self.tag = tag
        self.group_peer = partner_of(_P2P_OP, members, peer, group_peer)
        self.peer = members.world_rank(self.group_peer) if members.rank >= 0 else peer

    def __repr__(self) -> str:
        ends = ("group_dst", "isend") if self.op is isend else ("group_src", "irecv")
        return f"P2POp({ends[1]}, group={self.group!r}, {ends[0]}={self.group_peer}, tag={self.tag})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all sends and receives in *p2p_op_list*, whose order matters between the same two ranks only.

    Returns a Work for each. Raises: ValueError for what is no list of P2POp, or several groups.
    Raises: IndexError for an empty list.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.batch_isend_irecv
    """
    return start_all(p2p_op_list)


def start_all(operations: Any) -> list[Work]:
    """Check all of *operations* before any begins, and return their works."""
    if not isinstance(operations, list) or not all(isinstance(operation, P2POp) for operation in operations):
        raise _BATCH.explain(ArgumentError(f"p2p_op_list must be a list of P2POp, got {operations!r}"))
    if not operations:
        raise _BATCH.explain(SlotsMissingError("p2p_op_list must hold at least one operation, got an empty list"))
    if any(operation.group is not operations[0].group for operation in operations):
        raise _BATCH.explain(ArgumentError("p2p_op_list must hold operations of one group"))
    members = group_of(_BATCH, operations[0].group)
    prepared = [_prepared(members, operation) for operation in operations]
    work.read_before_others_write(prepared)
    started = [one.start() for one in prepared]
    return [Work(one, operation.tensor) for one, operation in zip(started, operations, strict=True) if one is not None]


def _prepared(members: groups.ProcessGroup, operation: P2POp) -> work.Work:
    tag = tag_of(_BATCH, members, operation.tag)
    call = calls.send if operation.op is isend else calls.receive
    return call(_BATCH, members, operation.tensor, operation.group_peer, tag)


def _check_tensor(members: groups.ProcessGroup, tensor: Any) -> None:
    try:
        reader_for(type(tensor))
    except TensorError as error:
        raise _P2P_OP.explain(TensorError(str(error).replace("{role}", "{input}")), members) from None


between_graphs(globals(), __all__)
