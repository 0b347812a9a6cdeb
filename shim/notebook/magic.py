"""The magics ``%%ranks`` and ``%ranks``: the ranks of a notebook, which are kept from cell to cell."""

from __future__ import annotations

import atexit
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError

from shim.launch.endings import COMMAND_GRACE, GRACE
from shim.launch.identity import MOST_RANKS, free_addresses
from shim.launch.pool import Outcome, RankPool
from shim.notebook.cells import Ending, run_cell
from shim.notebook.outputs import Columns, failure_of, in_words

_INTERVAL = 0.2  # seconds between two looks at the ranks' output
_PATIENCE = 10.0  # seconds after which it is told that some ranks have finished and others have not
_USAGE = "expected %%ranks [N] [--timeout SECONDS] above a cell, or a line with %ranks, %ranks restart or %ranks stop"


class Ranks:
    """The ranks of one shell of IPython: none, or those that its cells have started."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._pool: RankPool | None = None
        atexit.register(self.stop)

    def ranks(self, line: str, cell: str | None = None) -> None:
        """Run a cell on N ranks, which keep their variables and process groups for the next cell.

        %%ranks 4              run the cell on 4 ranks; start them if there are none, or another number
        %%ranks                run it on as many ranks as the last cell
        %%ranks 4 --timeout 9  interrupt the ranks that have not finished after 9 seconds
        %ranks                 tell whether ranks run
        %ranks restart         end them and start as many new ones
        %ranks stop            end them

        The ranks' init functions need no arguments. If a rank fails, the others are interrupted 2 seconds later.
        """
        words = line.split()
        if threading.current_thread() is not threading.main_thread():
            raise UsageError("%%ranks works in the kernel's main thread only: the ranks would end with another thread")
        if cell is None:
            self._obey(words)
        else:
            size, timeout = self._read(words)
            self._run(self._pool_of(size), f"# %%ranks {line}\n{cell}", timeout)

    def stop(self) -> None:
        """End the ranks, if any."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _obey(self, words: list[str]) -> None:
        """Do what a line without a cell asks for."""
        pool = self._pool
        if words not in ([], ["restart"], ["stop"]):
            raise UsageError(f"%ranks {' '.join(words)}: {_USAGE}")
        if pool is None or not pool.job:
            _say("no ranks run; %%ranks N above a cell starts them")
        elif not words:
            _say(f"{in_words(range(pool.size))}: running")
        else:
            pool.close()
            if words == ["restart"]:
                pool.run("os:getpid")  # starts new ones
            what = "restarted" if words == ["restart"] else "stopped"
            _say(f"{in_words(range(pool.size))}: {what}, all variables are gone")

    def _read(self, words: list[str]) -> tuple[int, float]:
        """Return the number of ranks and the seconds that the line above a cell asks for."""
        size, timeout = self._pool.size if self._pool is not None else 0, math.inf
        try:
            if "--timeout" in words:
                at = words.index("--timeout")
                timeout = float(words[at + 1])
                words = words[:at] + words[at + 2 :]
            if words:
                (number,) = words
                size = int(number)
            elif not size:
                raise UsageError("%%ranks: say on how many ranks, as in %%ranks 4; none run yet")
        except (ValueError, IndexError):
            raise UsageError(f"%%ranks {' '.join(words)}: {_USAGE}") from None
        if not 1 <= size <= MOST_RANKS:
            raise UsageError(f"%%ranks: the number of ranks must be at least 1 and at most {MOST_RANKS}, got {size}")
        if not timeout > 0:
            raise UsageError(f"%%ranks: --timeout must be above 0 seconds, got {timeout:g}")
        return size, timeout

    def _pool_of(self, size: int) -> RankPool:
        """Return *size* ranks, in place of those of another number."""
        if self._pool is not None and self._pool.size != size:
            if self._pool.job:
                _say(
                    f"{in_words(range(self._pool.size))}: ended, all variables are gone; starting {in_words(range(size))}"
                )
            self.stop()
        if self._pool is None:
            host, _, port = free_addresses(1)[0].partition(":")  # for torch's own init_process_group
            self._pool = RankPool(size, {"PYTHONUNBUFFERED": "1", "MASTER_ADDR": host, "MASTER_PORT": port})
        return self._pool

    def _run(self, pool: RankPool, source: str, timeout: float) -> None:
        """Run *source* on the ranks. Raises KeyboardInterrupt where the user has interrupted some, else RanksError where some failed."""
        columns = Columns(pool.size, can_change=hasattr(self._shell, "kernel"))
        with _interrupts() as interrupts:
            try:
                pool.begin(run_cell, source, f"In[{self._shell.execution_count}]")
            except OSError as error:  # no more processes or files
                raise UsageError(f"%%ranks: {pool.size} ranks cannot be started: {error}") from None
            try:
                outcomes, why_interrupted = _watch(pool, columns, timeout, interrupts)
                columns.show(is_last=True)
            except BaseException:
                pool.close()
                raise
        failure = failure_of(outcomes, why_interrupted, bool(interrupts), _remarks(outcomes, bool(pool.job)))
        if failure is not None:
            raise failure


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect the SIGINTs that come meanwhile, so that none breaks off the reading of an answer."""
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)


def _watch(pool: RankPool, columns: Columns, timeout: float, interrupts: Sequence[int]) -> tuple[list[Outcome], str]:
    """Show what the ranks print until all have ended; return how they did, and why some were interrupted, if they were.

    Ranks that do not obey are killed, at once where the user interrupts a second time.
    """
    outcomes: dict[int, Outcome] = {}
    why = ""
    until, failed_at, kill_at = time.monotonic() + timeout, math.inf, math.inf
    tell_at = math.inf
    while pool.is_busy and time.monotonic() < kill_at and len(interrupts) < 2:
        came = pool.answers(_INTERVAL)
        for rank, outcome in came.items():
            if outcome is not None:
                outcomes[rank] = outcome
                columns.add(rank, outcome.printed)
                tell_at = min(tell_at, time.monotonic() + _PATIENCE)
            if outcome is None or outcome.error is not None or outcome.value.raised is not None:
                failed_at = min(failed_at, time.monotonic())
        if not came:
            for rank, text in pool.new_output().items():
                columns.add(rank, text)
            columns.show()
        if not why and time.monotonic() > tell_at:
            tell_at = math.inf
            late = in_words(rank for rank in range(pool.size) if rank not in outcomes)
            hint = "Interrupt the kernel if they wait for a call that will not come."
            _say(f"{in_words(outcomes)}: finished the cell; not yet: {late}. {hint}")
        if not why and (why := _why_to_interrupt(interrupts, until, timeout, failed_at)):
            pool.interrupt()
            kill_at = time.monotonic() + COMMAND_GRACE
    if len(outcomes) < pool.size:
        patience = f"{COMMAND_GRACE:g} s after an interrupt" if len(interrupts) < 2 else "before the second interrupt"
        ended = pool.give_up(patience)
        for rank, outcome in ended.items():
            columns.add(rank, outcome.printed)
        outcomes |= ended
    return [outcome for _, outcome in sorted(outcomes.items())], why


def _why_to_interrupt(interrupts: Sequence[int], until: float, timeout: float, failed_at: float) -> str:
    """Return what to say of ranks that are to be interrupted now; nothing where they are not."""
    if interrupts:
        return "interrupted"
    if time.monotonic() > until:
        return f"interrupted, not finished after {timeout:g} s"
    if time.monotonic() > failed_at + GRACE:
        return f"interrupted, {GRACE:g} s after another rank had failed"
    return ""


def _remarks(outcomes: Sequence[Outcome], are_there: bool) -> Iterator[str]:
    """Say what the cell has left unusable."""
    if not are_there:
        yield "All ranks were ended, all variables are gone; the next cell starts new ones."
        return
    endings: list[Ending] = [outcome.value for outcome in outcomes if outcome.value is not None]
    for name in sorted({name for ending in endings for name in ending.unusable_groups}):
        yield f"Group {name!r} can no longer be used: destroy it and initialise again on all ranks, or use %ranks restart."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
