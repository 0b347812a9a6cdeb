"""The functional collectives that write into tensors of the caller, and the sends and receives among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.tensors import copy_of, new_like
from shim.core.work import Work
from shim.errors import ArgumentError, TensorError
from shim.frontends.torch.distributed import _differentiable
from shim.frontends.torch.distributed._arguments import integer_of
from shim.frontends.torch.distributed._differentiable import begin, is_torch
from shim.frontends.torch.distributed._errors import ArgumentAssertionError, ArgumentTypeError
from shim.frontends.torch.distributed._functional import gathered, reduce_scattered
from shim.frontends.torch.distributed._functional_arguments import (
    check_list,
    check_same_shape,
    check_synchronous,
    group_rank_of,
    op_named,
    resized,
    splits_of,
)
from shim.frontends.torch.distributed._functional_calls import Call
from shim.frontends.torch.distributed._functional_errors import ListLengthError
from shim.frontends.torch.distributed._functional_groups import core_group_or_world

__all__ = [
    "all_gather_list",
    "all_gather_single",
    "all_reduce",
    "all_to_all_single",
    "batch",
    "receive",
    "reduce_scatter_single",
    "send",
]


def all_reduce(caller: Caller, tensor: Any, op: Any, group: Any, async_op: bool, tag: str) -> Any:
    call = _begin(caller, [tensor], group, async_op, tag)
    return _copied(tensor, _differentiable.all_reduce(call, tensor, op_named(call, op)))


def all_gather_single(
    caller: Caller, output: Any, tensor: Any, group: Any, async_op: bool, tag: str, gather_dim: int
) -> Any:
    call = _begin(caller, [tensor, output], group, async_op, tag)
    check_same_shape(call, output, resized(call, "gather_dim", tensor, gather_dim, True))
    return _copied(output, gathered(call, tensor, gather_dim))


def reduce_scatter_single(
    caller: Caller, output: Any, tensor: Any, op: Any, group: Any, async_op: bool, scatter_dim: int, tag: str
) -> Any:
    call = _begin(caller, [tensor, output], group, async_op, tag)
    check_same_shape(call, output, resized(call, "scatter_dim", tensor, scatter_dim, False))
    return _copied(output, reduce_scattered(call, tensor, op, scatter_dim))


def all_to_all_single(
    caller: Caller,
    output: Any,
    tensor: Any,
    output_split_sizes: Any,
    input_split_sizes: Any,
    group: Any,
    async_op: bool,
    tag: str,
) -> Any:
    call = _begin(caller, [tensor, output], group, async_op, tag)
    rows, into, cuts = splits_of(call, tensor, output_split_sizes, input_split_sizes)
    check_same_shape(call, output, (rows, *tensor.shape[1:]))
    return _copied(output, _differentiable.all_to_all(call, tensor, rows, into, cuts))


def all_gather_list(caller: Caller, outputs: list[Any], tensor: Any, group: Any, async_op: bool, tag: str) -> list[Any]:
    call = _begin(caller, [tensor], group, async_op, tag)
    check_list(call, "output", outputs)
    if len(outputs) != call.group.size:
        call.refuse(
            ArgumentError(f"{{output}} must have a tensor for each of {call.group.size} ranks, got {len(outputs)}")
        )
    shape = tuple(tensor.shape)
    for output in outputs:
        check_same_shape(call, output, shape, ArgumentAssertionError)
    parts = _differentiable.all_gather_parts(call, tensor, [shape] * len(outputs))
    for output, part in zip(outputs, parts, strict=True):
        _copied(output, part)
    return outputs


def send(caller: Caller, tensor: Any, dst: Any, tag: Any, group: Any, group_dst: int) -> Any:
    """Start sending a copy of *tensor* and return an empty tensor that stands for the sending."""
    return _begun(*_sending(_begin_pairwise(caller, [tensor], group), tensor, dst, tag, group_dst))


def receive(caller: Caller, tensor: Any, src: Any, tag: Any, group: Any, group_src: int) -> Any:
    """Start receiving into *tensor* and return what stands for it meanwhile."""
    return _begun(*_receiving(_begin_pairwise(caller, [tensor], group), tensor, src, tag, group_src))


def batch(caller: Caller, kinds: Any, peers: Any, tags: Any, tensors: Any, group: Any) -> list[Any]:
    """Start all sends and receives, after all of them have been found right."""
    if not all(isinstance(given, (list, tuple)) for given in (kinds, peers, tags, tensors)):
        raise caller.explain(ArgumentTypeError("op_list, peer_list, tag_list and tensors must be lists"))
    call = _begin_pairwise(caller, tensors, group)
    if not len(kinds) == len(peers) == len(tags) == len(tensors):
        raise caller.explain(
            ListLengthError(
                "op_list, peer_list, tag_list and tensors must be of one length, "
                f"got {len(kinds)}, {len(peers)}, {len(tags)} and {len(tensors)}"
            ),
            call.group,
        )
    ways = {"isend": _sending, "irecv": _receiving}
    unknown = [kind for kind in kinds if kind not in ways]
    if unknown:
        raise caller.explain(ArgumentError(f"op_list must hold 'isend' and 'irecv', got {unknown[0]!r}"), call.group)
    prepared = [
        ways[kind](call, tensor, peer, tag) for kind, peer, tag, tensor in zip(kinds, peers, tags, tensors, strict=True)
    ]
    return [_begun(work, output) for work, output in prepared]


def _sending(call: Call, tensor: Any, dst: Any, tag: Any, group_dst: int = -1) -> tuple[Work, Any]:
    peer = _other(call, dst, group_dst)
    return calls.send(
        call.caller, call.group, copy_of(tensor), peer, integer_of(call.caller, call.group, "tag", tag)
    ), new_like(tensor, (0,))


def _receiving(call: Call, tensor: Any, src: Any, tag: Any, group_src: int = -1) -> tuple[Work, Any]:
    output = tensor.detach()
    peer = _other(call, src, group_src)
    return calls.receive(call.caller, call.group, output, peer, integer_of(call.caller, call.group, "tag", tag)), output


def _begun(work: Work, output: Any) -> Any:
    from shim.frontends.torch.distributed._async_tensor import in_flight

    work.start()
    return in_flight(output, work)


def _other(call: Call, world_rank: Any, group_rank: int) -> int:
    peer = group_rank_of(call, world_rank, group_rank)
    if peer == call.group.rank:
        raise call.caller.explain(
            ArgumentError(f"{{root}} must be another rank than the caller's own, got {world_rank}"), call.group
        )
    return peer


def _begin(caller: Caller, tensors: Sequence[Any], group: Any, async_op: Any, tag: str) -> Call:
    call = begin(caller, core_group_or_world(caller, group, tag), tensors)
    check_synchronous(call, async_op)
    return call


def _begin_pairwise(caller: Caller, tensors: Sequence[Any], group: Any) -> Call:
    """Return the call of a send or receive; the other ranks are in no collective that an error could be told in."""
    members = core_group_or_world(caller, group)
    for tensor in tensors:
        if not is_torch(tensor):
            raise caller.explain(
                TensorError(
                    f"{{input}} must be a torch tensor, as what is returned is one, got a {type(tensor).__qualname__}"
                ),
                members,
            )
    return Call(caller, members)


def _copied(output: Any, result: Any) -> Any:
    """Copy *result* into *output* and return that; where both are torch's, gradients go through it."""
    if is_torch(output):
        return output.copy_(result)
    output[...] = result.detach() if is_torch(result) else result
    return output
