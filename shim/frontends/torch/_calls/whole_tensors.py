"""The collectives of one tensor that is concatenated or stacked of all ranks' parts, which torch has under several names."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import ENDED
from shim.errors import ArgumentError
from shim.frontends.torch._calls.arguments import is_now, one_of
from shim.frontends.torch._calls.coalescing_blocks import begins_at_once, finish_or_collect, open_blocks
from shim.frontends.torch._calls.reduce_op import PLAIN_SUM, SUM, reduction_of
from shim.frontends.torch._calls.work import Work, finish


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


def gather_whole(
    caller: Caller, members: ProcessGroup, output: Any, input: Any, root: int, async_op: bool
) -> Work | None:
    """Do what ``gather_single`` documents; *root* is a group rank."""
    into = output_at_root(caller, members, output, root)
    now = async_op is False or is_now(caller, members, async_op)
    work = calls.gather(caller, members, into, input, root, None, now)
    return None if work is ENDED else finish(work, async_op, [] if into is None else into)


def output_at_root(caller: Caller, members: ProcessGroup, output: Any, root: int) -> Any:
    """Return *output*, one tensor, on the group rank *root*, and None elsewhere, where it is not used."""
    if members.rank != root:
        return None
    if output is None:
        calls.refuse(caller, members, ArgumentError("{output} must be given on the rank that {root} names"))
    return one_of(caller, members, "output", output)
