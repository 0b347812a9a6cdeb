"""The collectives of one tensor that is concatenated or stacked of all ranks' parts, which torch has under several names."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import ENDED
from shim.frontends.torch._calls.arguments import is_now
from shim.frontends.torch._calls.coalescing_blocks import begins_at_once, finish_or_collect, open_blocks
from shim.frontends.torch._calls.reduce_op import PLAIN_SUM, SUM, reduction_of
from shim.frontends.torch._calls.work import Work


def all_gather_whole(caller: Caller, members: ProcessGroup, output: Any, input: Any, async_op: bool) -> Work | None:
    """Do what ``all_gather_single`` documents."""
    at_once = not open_blocks or begins_at_once(members)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.all_gather(caller, members, output, input, None, now and at_once, True)
    return None if work is ENDED else finish_or_collect(members, "all_gather_single", work, async_op, output)


def reduce_scatter_whole(
    caller: Caller, members: ProcessGroup, output: Any, input: Any, op: Any, async_op: bool
) -> Work | None:
    """Do what ``reduce_scatter_single`` documents."""
    at_once = not open_blocks or begins_at_once(members)
    kind, factor = PLAIN_SUM if op is SUM else reduction_of(caller, members, op, input)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.reduce_scatter(caller, members, output, input, kind, factor, None, now and at_once, True)
    return None if work is ENDED else finish_or_collect(members, "reduce_scatter_single", work, async_op, output)
