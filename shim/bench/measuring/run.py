"""From a plan to a record: who is there, the session with real rank processes, and what is to be said of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shim.bench import machine
from shim.bench.measuring.session import Outcome, Progress, Ranks, run_session
from shim.bench.planning.contenders import FLOORS, OURS, Contender
from shim.bench.planning.plan import Plan
from shim.bench.ranks.launchers import Mpi, find_mpi
from shim.bench.ranks.rank_set import RankSet
from shim.bench.results.record import ContenderRecord, Record


def present(
    contenders: Sequence[Contender], folders: Mapping[str, Path]
) -> tuple[dict[Contender, Mpi | None], dict[Contender, str]]:
    """Return which of *contenders* are installed, with the MPI of those that need one, and why the others are not there."""
    there: dict[Contender, Mpi | None] = {}
    absent: dict[Contender, str] = {}
    for contender in contenders:
        mpi = find_mpi(contender.mpi, folders) if contender.mpi and not contender.missing else None
        reason = contender.missing or (mpi if isinstance(mpi, str) else None)
        if reason:
            absent[contender] = reason
        else:
            there[contender] = mpi if isinstance(mpi, Mpi) else None
    return there, absent


def measure(
    plan: Plan,
    mpis: Mapping[Contender, Mpi | None],
    absent: Mapping[Contender, str],
    progress: Progress,
    keep: Callable[[Record], None],
) -> None:
    """Carry out *plan*. *mpis* has the plan's contenders, *absent* those that are not there.

    *keep* is given everything on record after each number of ranks.
    """
    described = machine.describe()

    def start(contender: Contender, ranks: int) -> Ranks:
        return RankSet(contender, ranks, plan.processors, mpis[contender])

    def kept(outcome: Outcome) -> None:
        described["load_after"] = machine.describe()["load_before"]
        keep(_record(plan, described, absent, outcome))

    run_session(plan, start, progress, kept)


def _record(plan: Plan, described: dict[str, object], absent: Mapping[Contender, str], outcome: Outcome) -> Record:
    there = [
        ContenderRecord(
            contender.name,
            contender.title,
            _role(contender),
            outcome.versions.get(contender.name, {}),
            {str(ranks): command for ranks, command in outcome.commands.get(contender.name, {}).items()},
        )
        for contender in plan.contenders
    ]
    gone = [ContenderRecord(one.name, one.title, _role(one), missing=reason) for one, reason in absent.items()]
    settings = {
        "collectives": list(plan.collectives),
        "ranks": list(plan.ranks),
        "dtypes": list(plan.dtypes),
        "computed": list(plan.computed),
        "sizes": list(plan.sizes),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
    }
    return Record(described, settings, [*there, *gone], list(outcome.results), list(outcome.overlaps))


def _role(contender: Contender) -> str:
    return "ours" if contender in OURS else "floor" if contender in FLOORS else "peer"
