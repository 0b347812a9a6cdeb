"""Reducing to every rank, to one, and to each its part: what the functions of every version do, given the engines' op."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.frontends._paddle.arguments import is_now, one_of, rank_of
from shim.frontends._paddle.graphs import SYMBOLIC, recorded
from shim.frontends._paddle.groups.group_views import group_of
from shim.frontends._paddle.tasks import Task, finish


def reduce_everywhere(caller: Caller, tensor: Any, op: ReduceOp, group: Any, sync_op: bool) -> Task | None:
    """Combine every rank's *tensor*, in place."""
    if type(tensor) in SYMBOLIC:
        return recorded(reduce_everywhere, caller, group, tensor, tensor, op)
    now = sync_op is True or is_now(caller, group, sync_op)
    return finish(calls.all_reduce(caller, group_of(caller, group), tensor, tensor, op, 1.0, now), sync_op, group)


def reduce_at(caller: Caller, tensor: Any, dst: Any, op: ReduceOp, group: Any, sync_op: bool) -> Task | None:
    """Combine every rank's *tensor* into that of the world's rank *dst*."""
    if type(tensor) in SYMBOLIC:
        return recorded(reduce_at, caller, group, tensor, tensor, dst, op)
    now = sync_op is True or is_now(caller, group, sync_op)
    root = rank_of(caller, group, "root", dst)
    return finish(calls.reduce(caller, group_of(caller, group), tensor, tensor, op, root, now=now), sync_op, group)


def reduce_parts(caller: Caller, output: Any, inputs: Any, op: ReduceOp, group: Any, sync_op: bool) -> Task | None:
    """Combine every rank's *inputs*, a tensor for each rank or one to be cut, and put this rank's part in *output*."""
    if type(output) in SYMBOLIC:
        return recorded(reduce_parts, caller, group, output, output, inputs, op)
    now = sync_op is True or is_now(caller, group, sync_op)
    return finish(calls.reduce_scatter(caller, group_of(caller, group), output, inputs, op, now=now), sync_op, group)


def reduce_one_tensor(caller: Caller, output: Any, input: Any, op: ReduceOp, group: Any, sync_op: bool) -> Task | None:
    """As ``reduce_parts``, with one tensor to be cut."""
    return reduce_parts(caller, output, one_of(caller, group, "input", input), op, group, sync_op)
