"""Tensors of the caller that functional collectives write, and the sends and receives among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.tensors import copy_of, new_like
from shim.core.work import Work
from shim.errors import ArgumentError, TensorError
from shim.frontends.torch._calls.arguments import integer_of
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError
from shim.frontends.torch._functional import differentiable
from shim.frontends.torch._functional.arguments import (
    check_list,
    check_same_shape,
    check_synchronous,
    group_rank_of,
    op_of,
)
from shim.frontends.torch._functional.differentiable import begin_call, is_torch
from shim.frontends.torch._functional.eager_calls import Call
from shim.frontends.torch._functional.errors import ListLengthError
from shim.frontends.torch._functional.groups import core_group_or_world


def all_gather_list(call: Call, outputs: list[Any], tensor: Any) -> list[Any]:
    """Write every rank's *tensor* into its place in *outputs* and return that."""
    check_list(call, "output", outputs)
    if len(outputs) != call.group.size:
        call.refuse(
            ArgumentError(f"{{output}} must have a tensor for each of {call.group.size} ranks, got {len(outputs)}")
        )
    shape = tuple(tensor.shape)
    for output in outputs:
        check_same_shape(call, output, shape, ArgumentAssertionError)
    parts = differentiable.all_gather_parts(call, tensor, [shape] * len(outputs))
    for output, part in zip(outputs, parts, strict=True):
        copied(output, part)
    return outputs


def reduce_scatter_list(call: Call, output: Any, parts: Any, op: Any) -> Any:
    """Write all ranks' place of this one in *parts*, combined by *op*, into *output* and return that."""
    check_list(call, "input", parts)
    if len(parts) != call.group.size:
        call.refuse(
            ArgumentError(f"{{input}} must have a tensor for each of {call.group.size} ranks, got {len(parts)}")
        )
    for part in parts:
        check_same_shape(call, output, part.shape, ArgumentAssertionError)
    return copied(output, differentiable.reduce_scatter_parts(call, parts, *op_of(call, op, parts[0])))


def batch(caller: Caller, kinds: Any, peers: Any, tags: Any, tensors: Any, group: Any) -> list[Any]:
    """Start all sends and receives, after all of them have been found right."""
    if not all(isinstance(given, (list, tuple)) for given in (kinds, peers, tags, tensors)):
        raise caller.explain(ArgumentTypeError("op_list, peer_list, tag_list and tensors must be lists"))
    call = begin_pairwise(caller, tensors, group)
    if not len(kinds) == len(peers) == len(tags) == len(tensors):
        raise caller.explain(
            ListLengthError(
                "op_list, peer_list, tag_list and tensors must be of one length, "
                f"got {len(kinds)}, {len(peers)}, {len(tags)} and {len(tensors)}"
            ),
            call.group,
        )
    ways = {"isend": sending, "irecv": receiving}
    unknown = [kind for kind in kinds if kind not in ways]
    if unknown:
        raise caller.explain(ArgumentError(f"op_list must hold 'isend' and 'irecv', got {unknown[0]!r}"), call.group)
    prepared = [
        ways[kind](call, tensor, peer, tag) for kind, peer, tag, tensor in zip(kinds, peers, tags, tensors, strict=True)
    ]
    return [begun(work, output) for work, output in prepared]


def sending(call: Call, tensor: Any, dst: Any, tag: Any, group_dst: int = -1) -> tuple[Work, Any]:
    peer = _other(call, dst, group_dst)
    return calls.send(
        call.caller, call.group, copy_of(tensor), peer, integer_of(call.caller, call.group, "tag", tag)
    ), new_like(tensor, (0,))


def receiving(call: Call, tensor: Any, src: Any, tag: Any, group_src: int = -1) -> tuple[Work, Any]:
    output = tensor.detach()
    peer = _other(call, src, group_src)
    return calls.receive(call.caller, call.group, output, peer, integer_of(call.caller, call.group, "tag", tag)), output


def begun(work: Work, output: Any) -> Any:
    from shim.frontends.torch._functional.async_tensor import in_flight

    work.start()
    return in_flight(output, work)


def _other(call: Call, world_rank: Any, group_rank: int) -> int:
    peer = group_rank_of(call, world_rank, group_rank)
    if peer == call.group.rank:
        raise call.caller.explain(
            ArgumentError(f"{{root}} must be another rank than the caller's own, got {world_rank}"), call.group
        )
    return peer


def begin_synchronous(caller: Caller, tensors: Sequence[Any], group: Any, async_op: Any, tag: str) -> Call:
    call = begin_call(caller, core_group_or_world(caller, group, tag), tensors)
    check_synchronous(call, async_op)
    return call


def begin_pairwise(caller: Caller, tensors: Sequence[Any], group: Any) -> Call:
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


def copied(output: Any, result: Any) -> Any:
    """Copy *result* into *output* and return that; where both are torch's, gradients go through it."""
    if is_torch(output):
        return output.copy_(result)
    output[...] = result.detach() if is_torch(result) else result
    return output
