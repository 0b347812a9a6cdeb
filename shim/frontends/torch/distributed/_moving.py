"""What the functions that move elements as they are do, given who calls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.work import ENDED
from shim.frontends.torch.distributed._arguments import (
    is_now,
    list_at_root,
    list_of,
    outputs_at_root,
    outputs_of,
    root_of,
    splits_of,
)
from shim.frontends.torch.distributed._coalescing import begins_at_once, finish_or_collect, open_blocks
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._options import barrier_seconds_of, host_group_of
from shim.frontends.torch.distributed._work import Work, finish

__all__ = [
    "all_gather",
    "all_gather_whole",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "scatter",
]


def broadcast(caller: Caller, tensor: Any, src: Any, group: Any, async_op: bool, group_src: Any) -> Work | None:
    members = group_of(caller, group)
    root = root_of(caller, members, src, group_src)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.broadcast(caller, members, tensor, root, now)
    return None if work is ENDED else finish(work, async_op, tensor)


def all_gather(caller: Caller, tensor_list: Any, tensor: Any, group: Any, async_op: bool) -> Work | None:
    members = group_of(caller, group)
    outputs = outputs_of(caller, group, "output", tensor_list)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.all_gather(caller, members, outputs, tensor, None, now)
    return None if work is ENDED else finish(work, async_op, tensor_list)


def gather(
    caller: Caller, tensor: Any, gather_list: Any, dst: Any, group: Any, async_op: bool, group_dst: Any
) -> Work | None:
    members = group_of(caller, group)
    root = root_of(caller, members, dst, group_dst, 0)
    outputs = outputs_at_root(caller, group, "output", gather_list, root)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.gather(caller, members, outputs, tensor, root, None, now)
    return None if work is ENDED else finish(work, async_op, gather_list or [])


def scatter(
    caller: Caller, tensor: Any, scatter_list: Any, src: Any, group: Any, async_op: bool, group_src: Any
) -> Work | None:
    members = group_of(caller, group)
    root = root_of(caller, members, src, group_src, 0)
    inputs = list_at_root(caller, group, "input", scatter_list, root)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.scatter(caller, members, tensor, inputs, root, None, now)
    return None if work is ENDED else finish(work, async_op, tensor)


def all_to_all(
    caller: Caller, output_tensor_list: Any, input_tensor_list: Any, group: Any, async_op: bool
) -> Work | None:
    members = group_of(caller, group)
    outputs = outputs_of(caller, group, "output", output_tensor_list)
    inputs = list_of(caller, group, "input", input_tensor_list)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.all_to_all(caller, members, outputs, inputs, None, None, now)
    return None if work is ENDED else finish(work, async_op, output_tensor_list)


def all_to_all_single(
    caller: Caller, output: Any, input: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, async_op: bool
) -> Work | None:
    members = group_of(caller, group)
    rows = cuts = None
    if output_split_sizes is not None or input_split_sizes is not None:
        rows = splits_of(caller, group, "output_splits", output_split_sizes)
        cuts = splits_of(caller, group, "input_splits", input_split_sizes)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.all_to_all(caller, members, output, input, rows, cuts, now, True)
    return None if work is ENDED else finish(work, async_op, output)


def barrier(caller: Caller, group: Any, async_op: bool, device_ids: Any, timeout: timedelta | None) -> Work | None:
    members = group_of(caller, group) if device_ids is None else host_group_of(caller, group, device_ids)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.barrier(caller, members, now and timeout is None)
    return None if work is ENDED else finish(work, async_op, [], barrier_seconds_of(caller, group, timeout))


def all_gather_whole(caller: Caller, output: Any, input: Any, group: Any, async_op: bool) -> Work | None:
    members = group_of(caller, group)
    at_once = not open_blocks or begins_at_once(members)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.all_gather(caller, members, output, input, None, now and at_once, True)
    return None if work is ENDED else finish_or_collect(caller, group, "all_gather_single", work, async_op, output)
