"""From a plan to a record: who is there, the session with real rank processes, how it gets on, what ends it early, and what is to be said of the machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType

import rich.progress
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from shim.bench import machine
from shim.bench.plan import FLOORS, OURS, Contender, Plan
from shim.bench.ranks.launchers import Mpi, find_mpi
from shim.bench.ranks.rank_set import RankSet
from shim.bench.results.record import ContenderRecord, Record
from shim.bench.session import Outcome, Progress, Ranks, run_session


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


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let the first signal that asks for an end raise SystemExit, with the status a shell expects, and others pass meanwhile.

    Putting away is not interrupted by a second one; it is over within seconds. Use it in the main thread. What is ignored already,
    as SIGHUP is under nohup, stays so.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    try:
        for number in taken:
            signal.signal(number, end)
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


_LINE_SECONDS = 30.0  # between two lines where output is no terminal
_DRAW_SECONDS = 0.5  # between two pictures of the bar


class ProgressBar:
    """A bar with the time that is left in a terminal, a line now and then elsewhere. Use it as a context manager.

    ``total`` is the sum of the weights that it will be advanced by.
    """

    def __init__(self, total: float, console: Console) -> None:
        self._console, self._total, self._done = console, total, 0.0
        self._begun = self._drawn = time.monotonic()
        self._bar = rich.progress.Progress(
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
            expand=True,
            transient=True,
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> ProgressBar:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def begin(self, text: str) -> None:
        """Say what is measured next."""
        self._bar.update(self._task, description=text)
        self._draw()

    def advance(self, weight: float) -> None:
        """Count what has been measured."""
        self._done += weight
        self._bar.update(self._task, completed=self._done)

    def _draw(self) -> None:
        now = time.monotonic()
        if self._console.is_terminal:
            if now - self._drawn >= _DRAW_SECONDS:
                self._drawn = now
                self._bar.refresh()
        elif now - self._drawn >= _LINE_SECONDS:
            self._drawn = now
            elapsed = now - self._begun
            share = self._done / self._total
            left = str(timedelta(seconds=round(elapsed / share - elapsed))) if share else "?"
            self._console.print(f"{share:4.0%} measured, {left} left", highlight=False)
