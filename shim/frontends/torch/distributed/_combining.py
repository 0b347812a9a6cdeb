"""What the functions that combine elements do, given who calls."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.work import ENDED
from shim.frontends.torch.distributed._arguments import is_now, list_of, one_of, root_of
from shim.frontends.torch.distributed._coalescing import begins_at_once, finish_or_collect, open_blocks
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._reduce_op import PLAIN_SUM, SUM, reduction_of
from shim.frontends.torch.distributed._work import Work, finish

__all__ = ["all_reduce", "reduce", "reduce_scatter", "reduce_scatter_whole"]


def all_reduce(caller: Caller, tensor: Any, op: Any, group: Any, async_op: bool) -> Work | None:
    members = group_of(caller, group)
    at_once = not open_blocks or begins_at_once(members)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(caller, group, op, tensor)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.all_reduce(caller, members, tensor, tensor, kind, factor, now and at_once)
    return None if work is ENDED else finish_or_collect(caller, group, "all_reduce", work, async_op, tensor)


def reduce(caller: Caller, tensor: Any, dst: Any, op: Any, group: Any, async_op: bool, group_dst: Any) -> Work | None:
    members = group_of(caller, group)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(caller, group, op, tensor)
    root = root_of(caller, members, dst, group_dst)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.reduce(caller, members, tensor, tensor, kind, root, factor, now)
    return None if work is ENDED else finish(work, async_op, tensor)


def reduce_scatter(caller: Caller, output: Any, input_list: Any, op: Any, group: Any, async_op: bool) -> Work | None:
    members = group_of(caller, group)
    into = one_of(caller, group, "output", output)
    parts = list_of(caller, group, "input", input_list)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(caller, group, op, output)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.reduce_scatter(caller, members, into, parts, kind, factor, None, now)
    return None if work is ENDED else finish(work, async_op, output)


def reduce_scatter_whole(caller: Caller, output: Any, input: Any, op: Any, group: Any, async_op: bool) -> Work | None:
    members = group_of(caller, group)
    at_once = not open_blocks or begins_at_once(members)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(caller, group, op, input)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.reduce_scatter(caller, members, output, input, kind, factor, None, now and at_once, True)
    return None if work is ENDED else finish_or_collect(caller, group, "reduce_scatter_single", work, async_op, output)
