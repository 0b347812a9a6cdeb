"""``comm_func``'s batches, which return what they receive instead of writing it into the callers' tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors import framework_of, new_like
from shim.core.work import Batch, Work
from shim.errors import ArgumentError, TensorError
from shim.frontends.mindspore._arguments import peer_in
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._in_place.batches import check_peer_and_tag, direction, group_of_all
from shim.frontends.mindspore._in_place.point_to_point import refuse_gradient_of_sent
from shim.frontends.mindspore._tensors import EmptyTensor, zeros


class Exchange:
    """One send or receive, as it was asked for; *op* counts by its name, whichever function it is."""

    def __init__(
        self,
        caller: Caller,
        op: str | Callable[..., Any],
        tensor: Any,
        peer: int,
        group: str | None,
        tag: int,
        recv_dtype: Any,
    ) -> None:
        if not isinstance(op, str) and not callable(op):
            raise caller.explain(ArgumentTypeError(f"op must be a str or a function, got {type(op).__name__}"))
        name = op if isinstance(op, str) else getattr(op, "__name__", repr(op))
        if name not in ("isend", "irecv"):
            raise caller.explain(ArgumentError(f"op must be isend or irecv, got {name!r}"))
        if not isinstance(tensor, tuple) and not framework_of(type(tensor)):
            raise caller.explain(TensorError(f"tensor must be a tensor or a shape, got {type(tensor).__name__}"))
        if recv_dtype is not None:
            EmptyTensor.checked(caller, "recv_dtype", recv_dtype)
        check_peer_and_tag(caller, peer, tag)
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.recv_dtype = recv_dtype


def carry_out(caller: Caller, p2p_op_list: Sequence[Any], kind: type) -> tuple[Any, ...]:
    """Carry out all of *p2p_op_list*, which must be of *kind*, and return a tensor for each."""
    group = group_of_all(caller, p2p_op_list, kind)
    outputs = [_output(caller, group, each) for each in p2p_op_list]
    Batch([_prepared(caller, group, each, output) for each, output in zip(p2p_op_list, outputs, strict=True)]).wait()
    return tuple(outputs)


def _output(caller: Caller, group: ProcessGroup, each: Exchange) -> Any:
    """Return the tensor to receive into, or for what is sent one 0."""
    if direction(each) == "isend":
        if isinstance(each.tensor, tuple):
            raise caller.explain(TensorError("tensor must be a tensor to be sent, got a shape"), group)
        return zeros(each.tensor, ())
    if not isinstance(each.tensor, tuple):
        return new_like(each.tensor)
    if each.recv_dtype is None:
        raise caller.explain(ArgumentError("recv_dtype must be given where tensor is a shape, got None"), group)
    if framework_of(type(each.recv_dtype)) == "mindspore":
        return new_like(sys.modules["mindspore"].mint.empty((), dtype=each.recv_dtype), each.tensor)
    return EmptyTensor(each.recv_dtype, each.tensor).like()


def _prepared(caller: Caller, group: ProcessGroup, each: Exchange, output: Any) -> Work:
    peer = peer_in(caller, group, each.peer)
    if direction(each) == "isend":
        refuse_gradient_of_sent(caller, group, each.tensor)
        return calls.send(caller, group, each.tensor, peer)
    return calls.receive(caller, group, output, peer)
