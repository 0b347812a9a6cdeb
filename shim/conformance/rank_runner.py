"""Has rank processes carry out calls, those of the documents' cases and of the tables' cells, and gathers what every rank saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shim.conformance.quiet import QUIET
from shim.core import groups
from shim.core.callers import Caller
from shim.launch.original import Original
from shim.launch.pool import RankPool

_DEADLINE = 60.0  # seconds for one call; most take milliseconds
_ME = Caller("shim conformance")


@dataclass(frozen=True)
class Call:
    """What *ranks* processes with tensors of *kind* call with *arguments*, for the sake of *what*."""

    what: Any
    kind: str
    ranks: int
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Seen:
    """What the ranks returned within *seconds*, and the errors of those that returned nothing."""

    seconds: float
    values: Mapping[int, Any]
    errors: Mapping[int, str]


def run_in_ranks(target: str, calls: Sequence[Call], on_seen: Callable[[Call, Seen], bool]) -> None:
    """Have ranks carry out *calls* of *target*, kind by kind, and tell *on_seen* of each; where it returns False, new ranks go on.

    Ranks are copies of a process that has imported the kind's framework, one pool for each number of ranks.
    """
    for kind in dict.fromkeys(call.kind for call in calls):
        of_kind = [call for call in calls if call.kind == kind]
        with Original([kind, target.partition(":")[0]], QUIET) as original:
            original.start()  # so that no call's seconds have the import in them
            for ranks in sorted({call.ranks for call in of_kind}):
                with RankPool(ranks, original=original) as pool:
                    for call in of_kind:
                        if call.ranks == ranks and not on_seen(call, _see(pool, target, call)):
                            pool.close()  # what went wrong must not go on in the next call


def _see(pool: RankPool, target: str, call: Call) -> Seen:
    begin = time.perf_counter()
    outcomes = pool.run(target, *call.arguments, deadline=_DEADLINE)
    seconds = time.perf_counter() - begin
    values = {outcome.rank: outcome.value for outcome in outcomes if outcome.error is None}
    told = {outcome.rank: outcome.error for outcome in outcomes}
    errors = {rank: told.get(rank) or "this rank said nothing" for rank in range(call.ranks) if rank not in values}
    return Seen(seconds, values, errors)


def leave_world() -> None:
    """End the world that this rank has entered, if any, so that its next call enters one of its own."""
    if groups.is_initialized():
        groups.close_group(groups.world(_ME))
