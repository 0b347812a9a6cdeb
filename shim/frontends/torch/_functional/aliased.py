"""What the functional collectives share that torch has under several names, or for a list of tensors.

Results are started at once and waited for when they are used; where a dimension has to be put in its place after the
collective, the result is there when the call returns.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.work import finish
from shim.errors import UnsupportedError
from shim.frontends.torch._calls.coalesced_lists import together
from shim.frontends.torch._compiled_graphs import is_traced
from shim.frontends.torch._functional import differentiable, graph_calls
from shim.frontends.torch._functional.arguments import (
    check_list,
    cut_dimension,
    dimension_of,
    op_of,
    splits_of,
)
from shim.frontends.torch._functional.differentiable import begin_call, is_torch
from shim.frontends.torch._functional.eager_calls import Call
from shim.frontends.torch._functional.errors import ListLengthError
from shim.frontends.torch._functional.groups import core_group


def all_gather(caller: Caller, tensor: Any, gather_dim: int, group: Any, tag: str) -> Any:
    return gathered(
        begin_call(caller, core_group(caller, group, tag), [tensor], in_background=True), tensor, gather_dim
    )


def reduce_scatter(caller: Caller, tensor: Any, op: Any, scatter_dim: int, group: Any, tag: str) -> Any:
    call = begin_call(caller, core_group(caller, group, tag), [tensor], in_background=True)
    return reduce_scattered(call, tensor, op, scatter_dim)


def all_to_all(
    caller: Caller, tensor: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str
) -> Any:
    call = begin_call(caller, core_group(caller, group, tag), [tensor], in_background=True)
    rows, into, cuts = splits_of(call, tensor, output_split_sizes, input_split_sizes)
    return differentiable.all_to_all(call, tensor, rows, into, cuts)


def all_reduce_coalesced(caller: Caller, tensors: Any, op: Any, group: Any, tag: str) -> list[Any]:
    call = _begin_list(caller, tensors, group, tag)
    ops = [op_of(call, op, tensor) for tensor in tensors]
    return _carried_out(
        call, [differentiable.all_reduce(call, tensor, *one) for tensor, one in zip(tensors, ops, strict=True)]
    )


def all_gather_coalesced(caller: Caller, tensors: Any, group: Any, tag: str) -> list[Any]:
    call = _begin_list(caller, tensors, group, tag)
    return _carried_out(call, [gathered(call, tensor, 0) for tensor in tensors])


def reduce_scatter_coalesced(caller: Caller, tensors: Any, op: Any, dimensions: Any, group: Any, tag: str) -> list[Any]:
    call = _begin_list(caller, tensors, group, tag)
    if not isinstance(dimensions, Sequence) or len(dimensions) != len(tensors):
        call.refuse(
            ListLengthError(f"scatter_dim must have a dimension for each of {len(tensors)} inputs, got {dimensions!r}")
        )
    for tensor, dimension in zip(tensors, dimensions, strict=True):
        op_of(call, op, tensor)
        cut_dimension(call, "scatter_dim", tensor, dimension)
    return _carried_out(
        call,
        [reduce_scattered(call, tensor, op, dimension) for tensor, dimension in zip(tensors, dimensions, strict=True)],
    )


def gathered(call: Call, tensor: Any, gather_dim: int) -> Any:
    """Return all ranks' *tensor* one after the other along *gather_dim*."""
    dimension = dimension_of(call, "gather_dim", tensor, gather_dim)
    if dimension == 0:
        return differentiable.all_gather(call, tensor)
    _check_torch(call, "gather_dim", tensor)
    shapes = [tuple(tensor.shape)] * call.group.size
    return sys.modules["torch"].cat(differentiable.all_gather_parts(call, tensor, shapes), dimension)


def reduce_scattered(call: Call, tensor: Any, op: Any, scatter_dim: int) -> Any:
    """Return this rank's part, along *scatter_dim*, of all ranks' *tensor* combined by *op*."""
    kind, factor = op_of(call, op, tensor)
    dimension = cut_dimension(call, "scatter_dim", tensor, scatter_dim)
    if dimension == 0:
        return differentiable.reduce_scatter(call, tensor, kind, factor)
    _check_torch(call, "scatter_dim", tensor)
    return differentiable.reduce_scatter_parts(call, _equal_parts(call, tensor, dimension), kind, factor)


def _equal_parts(call: Call, tensor: Any, dimension: int) -> Sequence[Any]:
    rows = tensor.shape[dimension] // call.group.size
    parts: Sequence[Any] = tensor.split([rows] * call.group.size, dimension)
    return parts


def _check_torch(call: Call, role: str, tensor: Any) -> None:
    if not is_torch(tensor):
        call.refuse(UnsupportedError(f"{{{role}}} must be 0 in the torch frontend for tensors that are not torch's"))


def _begin_list(caller: Caller, tensors: Any, group: Any, tag: str) -> Call:
    """Return the call whose works are collected, for ``_carried_out``."""
    members = core_group(caller, group, tag)
    call = begin_call(caller, members, check_list(Call(caller, members), "input", tensors), in_background=True)
    if len(tensors) and is_torch(tensors[0]) and is_traced():
        graph_calls.announce(call, tensors[0], len(tensors))
        return call
    return call._replace(unstarted=[])


def _carried_out(call: Call, results: list[Any]) -> list[Any]:
    """Return *results*, after carrying out, here or in the background, the works they were prepared with."""
    if call.unstarted is not None:
        finish(together(call.caller, call.group, call.unstarted), call.in_background)
    return results
