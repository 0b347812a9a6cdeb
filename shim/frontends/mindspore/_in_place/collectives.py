"""The collectives that write into their callers' tensors and in which every rank does the same.

``mint.distributed`` and ``ops.communication`` have the same ones, and each says as its ``Caller`` which was called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import ENDED
from shim.errors import ArgumentError
from shim.frontends.mindspore._arguments import (
    alike,
    full_list,
    group_for,
    of_one_dtype,
    one_tensor,
    reduce_op,
    splits,
)
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._gradients import differentiable
from shim.frontends.mindspore._gradients.recording import belongs, in_place
from shim.frontends.mindspore._groups.reserved import pass_over_reserved
from shim.frontends.mindspore._handles import CommHandle, handle_of
from shim.frontends.mindspore._reduce_ops import REDUCE_OPS

_OPS_OF_UNEVEN = tuple(op for op in REDUCE_OPS if op != "prod")


def all_reduce(caller: Caller, tensor: Any, op: str, group: str | None, async_op: bool) -> CommHandle | None:
    """Combine all ranks' *tensor* into every rank's."""
    found = group_for(caller, group, async_op)
    kind = reduce_op(caller, found, op)
    if not belongs(tensor):  # what in_place would find; asked here, as this call is the one that must be quick
        work = calls.all_reduce(caller, found, tensor, tensor, kind, 1.0, not async_op)
        return None if work is ENDED else handle_of(work, async_op)
    return in_place(
        caller,
        found,
        partial(calls.all_reduce, caller, found, tensor, tensor, kind, 1.0),
        async_op,
        [tensor],
        [tensor],
        partial(differentiable.gradient_of_all_reduce, caller, found, tensor, kind),
    )


def all_gather_into_tensor(
    caller: Caller,
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None,
    group: str | None,
    async_op: bool,
) -> CommHandle | None:
    """Concatenate all ranks' *input* in every rank's *output*."""
    found = group_for(caller, group, async_op)
    one_tensor(caller, found, "output", output)
    one_tensor(caller, found, "input", input)
    sizes = splits(output_split_sizes)
    return in_place(
        caller,
        found,
        partial(calls.all_gather, caller, found, output, input, sizes),
        async_op,
        [output],
        [input],
        partial(differentiable.gradient_of_all_gather, caller, found, input, sizes),
    )


def all_gather(
    caller: Caller, tensor_list: Sequence[Any], tensor: Any, group: str | None, async_op: bool
) -> CommHandle | None:
    """Copy each rank's *tensor* into its place in every rank's *tensor_list*."""
    found = group_for(caller, group, async_op)
    full_list(caller, found, "output", tensor_list)
    one_tensor(caller, found, "input", tensor)
    _like_own(caller, found, "output", tensor_list, tensor)
    return in_place(
        caller,
        found,
        partial(calls.all_gather, caller, found, tensor_list, tensor, None),
        async_op,
        tensor_list,
        [tensor],
        partial(differentiable.gradient_of_all_gather, caller, found, tensor),
    )


def reduce_scatter_tensor(
    caller: Caller, output: Any, input: Any, op: str, group: str | None, async_op: bool
) -> CommHandle | None:
    """Combine all ranks' *input* and put this rank's rows into *output*."""
    return _reduce_scatter(caller, output, input, None, op, tuple(REDUCE_OPS), group, async_op)


def reduce_scatter_tensor_uneven(
    caller: Caller,
    output: Any,
    input: Any,
    input_split_sizes: Sequence[int] | None,
    op: str,
    group: str | None,
    async_op: bool,
) -> CommHandle | None:
    """Combine all ranks' *input* and put this rank's rows, *input_split_sizes*[rank] of them, into *output*."""
    return _reduce_scatter(caller, output, input, input_split_sizes, op, _OPS_OF_UNEVEN, group, async_op)


def _reduce_scatter(
    caller: Caller,
    output: Any,
    input: Any,
    input_split_sizes: Sequence[int] | None,
    op: str,
    among: Sequence[str],
    group: str | None,
    async_op: bool,
) -> CommHandle | None:
    found = group_for(caller, group, async_op)
    kind = reduce_op(caller, found, op, among)
    one_tensor(caller, found, "output", output)
    one_tensor(caller, found, "input", input)
    sizes = splits(input_split_sizes)
    return in_place(
        caller,
        found,
        partial(calls.reduce_scatter, caller, found, output, input, kind, 1.0, sizes),
        async_op,
        [output],
        [input],
        partial(differentiable.gradient_of_reduce_scatter, caller, found, [input], kind, sizes),
    )


def reduce_scatter(
    caller: Caller, output: Any, input_list: Sequence[Any], op: str, group: str | None, async_op: bool
) -> CommHandle | None:
    """Combine all ranks' tensors in this rank's place of *input_list* into *output*."""
    found = group_for(caller, group, async_op)
    kind = reduce_op(caller, found, op)
    full_list(caller, found, "input", input_list)
    one_tensor(caller, found, "output", output)
    _like_own(caller, found, "input", input_list, output)
    return in_place(
        caller,
        found,
        partial(calls.reduce_scatter, caller, found, output, input_list, kind, 1.0, None),
        async_op,
        [output],
        input_list,
        partial(differentiable.gradient_of_reduce_scatter, caller, found, input_list, kind),
    )


def all_to_all(
    caller: Caller, outputs: Sequence[Any], inputs: Sequence[Any], group: str | None, async_op: bool
) -> CommHandle | None:
    """Copy tensor j of rank i's *inputs* into tensor i of rank j's *outputs*."""
    found = group_for(caller, group, async_op)
    of_one_dtype(caller, found, "output", outputs)
    of_one_dtype(caller, found, "input", inputs)
    return in_place(
        caller,
        found,
        partial(calls.all_to_all, caller, found, outputs, inputs, None, None),
        async_op,
        outputs,
        inputs,
        partial(differentiable.gradient_of_all_to_all, caller, found, inputs),
    )


def all_to_all_single(
    caller: Caller,
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: str | None,
    async_op: bool,
) -> CommHandle | None:
    """Send rows of *input* to each rank and put the rows of each rank into *output*."""
    found = group_for(caller, group, async_op)
    one_tensor(caller, found, "output", output)
    one_tensor(caller, found, "input", input)
    received, sent = splits(output_split_sizes), splits(input_split_sizes)
    return in_place(
        caller,
        found,
        partial(calls.all_to_all, caller, found, output, input, received, sent),
        async_op,
        [output],
        [input],
        partial(differentiable.gradient_of_all_to_all, caller, found, [input], received, sent),
    )


def all_to_all_by_matrix(
    caller: Caller, output: Any, input: Any, send_count_matrix: list[int], group: str | None, async_op: bool
) -> CommHandle | None:
    """Send *send_count_matrix*[i * ranks + j] rows from rank i's *input* to rank j's *output*."""
    found = group_for(caller, group, async_op)
    counts = _matrix(caller, found, send_count_matrix)
    received = counts[found.rank :: found.size]
    sent = counts[found.rank * found.size : (found.rank + 1) * found.size]
    one_tensor(caller, found, "output", output)
    one_tensor(caller, found, "input", input)
    return in_place(
        caller,
        found,
        partial(calls.all_to_all, caller, found, output, input, received, sent),
        async_op,
        [output],
        [input],
        partial(differentiable.gradient_of_all_to_all, caller, found, [input], received, sent),
    )


def _matrix(caller: Caller, group: ProcessGroup, counts: object) -> list[int]:
    wanted = f"send_count_matrix must be a list of {group.size * group.size} ints that are not negative"
    if not isinstance(counts, list) or not all(isinstance(count, int) for count in counts):
        calls.refuse(caller, group, ArgumentTypeError(f"{wanted}, got {counts!r}"))
    if len(counts) != group.size * group.size:
        calls.refuse(caller, group, ArgumentTypeError(f"{wanted}, got {len(counts)}"))
    if min(counts) < 0:
        calls.refuse(caller, group, ArgumentError(f"{wanted}, got {min(counts)}"))
    return counts


def barrier(
    caller: Caller, group: str | None, async_op: bool, device_ids: list[int] | None = None
) -> CommHandle | None:
    """Wait until every rank has called this, and what was put on its device before has ended."""
    pass_over_reserved(caller, device_ids=device_ids)
    found = group_for(caller, group, async_op)
    mindspore = sys.modules.get("mindspore")
    if mindspore is not None and mindspore.get_context("device_target") != "CPU":
        mindspore.runtime.synchronize()
    return handle_of(calls.barrier(caller, found, now=not async_op), async_op)


def _like_own(caller: Caller, group: ProcessGroup, role: str, tensors: Sequence[Any], tensor: Any) -> None:
    """Refuse *tensors* that are not of one dtype, or of which this rank's differs in shape from *tensor*."""
    if group.rank >= 0:
        alike(caller, group, role, [tensor, tensors[group.rank]])
