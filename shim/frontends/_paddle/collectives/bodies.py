"""What the collectives do, whatever the order of a version's arguments and whatever its reduce ops."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.frontends._paddle.arguments import (
    exchange_places,
    filled,
    inputs_at_root,
    is_now,
    one_of,
    places_at_root,
    places_for,
    rank_of,
    splits_of,
    with_rows,
)
from shim.frontends._paddle.graphs import SYMBOLIC, places_like, recorded
from shim.frontends._paddle.groups.group_views import group_of
from shim.frontends._paddle.tasks import Task, finish


def broadcast_from(caller: Caller, tensor: Any, src: Any, group: Any, sync_op: bool) -> Task | None:
    """Put the *tensor* of the world's rank *src* into every rank's *tensor*."""
    if type(tensor) in SYMBOLIC:
        return recorded(broadcast_from, caller, group, tensor, tensor, src)
    now = sync_op is True or is_now(caller, group, sync_op)
    root = rank_of(caller, group, "root", src)
    return finish(calls.broadcast(caller, group_of(caller, group), tensor, root, now=now), sync_op, group)


def gather_all(caller: Caller, outputs: Any, tensor: Any, group: Any, sync_op: bool) -> Task | None:
    """Put every rank's *tensor* into *outputs*: a list, filled when it is empty, or one tensor."""
    if type(tensor) in SYMBOLIC:
        places_like(outputs, [tensor] * group_of(caller, group).size)
        return recorded(gather_all, caller, group, outputs, outputs, tensor)
    now = sync_op is True or is_now(caller, group, sync_op)
    places = places_for(caller, group, outputs, tensor)
    return filled(
        outputs,
        places,
        finish(calls.all_gather(caller, group_of(caller, group), places, tensor, now=now), sync_op, group),
    )


def gather_at(caller: Caller, tensor: Any, outputs: Any, dst: Any, group: Any, sync_op: bool) -> Task | None:
    """Put every rank's *tensor* into *outputs* on *dst*, filling it when it is empty."""
    if type(tensor) in SYMBOLIC:
        places_like(outputs, [tensor] * group_of(caller, group).size if group_of(caller, None).rank == dst else [])
        return recorded(gather_at, caller, group, outputs, tensor, outputs, dst)
    now = sync_op is True or is_now(caller, group, sync_op)
    root = rank_of(caller, group, "root", dst)
    places = places_at_root(caller, group, outputs, tensor, root)
    return filled(
        outputs if places is not None else None,
        places,
        finish(calls.gather(caller, group_of(caller, group), places, tensor, root, now=now), sync_op, group),
    )


def scatter_from(caller: Caller, tensor: Any, inputs: Any, src: Any, group: Any, sync_op: bool) -> Task | None:
    """Put this rank's part of *src*'s *inputs* into *tensor*."""
    if type(tensor) in SYMBOLIC:
        return recorded(scatter_from, caller, group, tensor, tensor, inputs, src)
    now = sync_op is True or is_now(caller, group, sync_op)
    root = rank_of(caller, group, "root", src)
    parts = inputs_at_root(caller, group, inputs, root)
    return finish(calls.scatter(caller, group_of(caller, group), tensor, parts, root, now=now), sync_op, group)


def exchange(caller: Caller, outputs: Any, inputs: Any, group: Any, sync_op: bool) -> Task | None:
    """Send each of *inputs* to its rank and put what every rank sent into *outputs*, filling it when it is empty."""
    if type(inputs[0] if isinstance(inputs, (list, tuple)) and inputs else inputs) in SYMBOLIC:
        return recorded(exchange, caller, group, places_like(outputs, inputs), outputs, inputs)
    now = sync_op is True or is_now(caller, group, sync_op)
    places = exchange_places(caller, group, outputs, inputs)
    return filled(
        outputs,
        places,
        finish(calls.all_to_all(caller, group_of(caller, group), places, inputs, now=now), sync_op, group),
    )


def exchange_single(
    caller: Caller, output: Any, input: Any, output_splits: Any, input_splits: Any, group: Any, sync_op: bool
) -> Task | None:
    """Send the parts of *input* to their ranks and put what every rank sent one after the other into *output*."""
    if type(output) in SYMBOLIC:
        return recorded(exchange_single, caller, group, output, output, input, output_splits, input_splits)
    now = sync_op is True or is_now(caller, group, sync_op)
    output_rows = splits_of(caller, group, "output_splits", output_splits)
    input_rows = splits_of(caller, group, "input_splits", input_splits)
    return finish(
        calls.all_to_all(
            caller,
            group_of(caller, group),
            with_rows(output, output_rows),
            with_rows(input, input_rows),
            output_rows,
            input_rows,
            now=now,
            whole=True,
        ),
        sync_op,
        group,
    )


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
