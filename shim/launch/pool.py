"""Rank processes that are started once and run one function after another, all ranks at the same time."""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import IO, Any, NamedTuple

from shim.launch.endings import GRACE
from shim.launch.identity import new_job_key, rank_environment, rank_variables
from shim.launch.original import Copy, Original, program_of

_MOST_OUTPUT = 1 << 20  # bytes of a rank's output that are shown
_LAST_WORDS = 0.5  # seconds for late ranks to write where they are


class Outcome(NamedTuple):
    """What came of a function on one rank: its value, or the text that says what went wrong, and what it ``printed``."""

    rank: int
    value: Any
    error: str | None
    printed: str = ""
    is_late: bool = False  # it had not answered at the deadline


class _Rank:
    """One rank process, with the pipes and the file its output goes to."""

    def __init__(
        self, rank: int, size: int, job: str, environment: Mapping[str, str] | None, original: Original | None
    ) -> None:
        self.rank = rank
        self.hung_up = False
        self._printed = 0
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end()
        tasks_in, tasks_out = os.pipe()
        answers_in, answers_out = os.pipe()
        self.tasks = Connection(tasks_out, readable=False)
        self.answers = Connection(answers_in, writable=False)
        try:
            self.process: subprocess.Popen[bytes] | Copy
            if original is not None:
                variables = {**(environment or {}), **rank_variables(rank, size, job)}
                self.process = original.copy(tasks_in, answers_out, self.output.fileno(), variables)
            else:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", program_of("shim.launch.pool_rank"), str(tasks_in), str(answers_out)],
                    stdin=subprocess.DEVNULL,
                    stdout=self.output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(tasks_in, answers_out),
                    env=rank_environment(rank, size, job, environment),
                )
        except BaseException:
            for stream in (self.tasks, self.answers, self.output):
                stream.close()
            raise
        finally:
            os.close(tasks_in)
            os.close(answers_out)

    def new_output(self) -> str:
        """Return what the process has printed since this was last asked."""
        text = os.pread(self.output.fileno(), _MOST_OUTPUT, self._printed)
        self._printed += len(text)
        return text.decode(errors="replace")

    def how_it_ended(self) -> str:
        status = self.process.wait()
        if status < 0:
            return f"rank {self.rank} died: killed by {signal.Signals(-status).name}"
        return f"rank {self.rank} died: its process exited with status {status}"

    def end(self) -> None:
        """See the process end, and close what belongs to it."""
        self.answers.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()


class RankPool:
    """*size* rank processes of this Python, started at the first ``run`` and reused by the next ones.

    Each finds its rank and the job in its environment, so that a frontend's init function needs no arguments;
    *environment* is added to it. When a rank dies or is late, or a run raises, all are ended, and the next run starts new ones.
    Use it as a context manager, or close it.

    With *original*, they are copies of it and are there at once, with all that it has imported. No deadline counts its imports.
    *describe* is given the process numbers of late ranks by rank and returns a text for each rank that it knows more about
    than the stacks of its threads, which the others show.
    """

    def __init__(
        self,
        size: int,
        environment: Mapping[str, str] | None = None,
        original: Original | None = None,
        describe: Callable[[Mapping[int, int]], Mapping[int, str]] = lambda pids: {},
    ) -> None:
        if size < 1:
            raise ValueError(f"a pool needs at least one rank, got {size}")
        self.size = size
        self._environment = environment
        self._original = original
        self._describe = describe
        self._ranks: list[_Rank] = []
        self._job = ""

    @property
    def job(self) -> str:
        """The name of the job that the processes are, which is another one whenever new ones are started; empty where there are none."""
        return self._job if self._ranks else ""

    def run(
        self, target: str | Callable[..., Any], *arguments: Any, deadline: float = 60.0, **keywords: Any
    ) -> list[Outcome]:
        """Call *target* with the arguments on every rank at once, and return the outcomes in rank order.

        *target* is a function at the top of a module, or its name "module:qualname"; the arguments and the value must be
        picklable. Ranks that have not answered after *deadline* seconds are ended, with where they were in the error.
        """
        name = target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"
        task = name, pickle.dumps((arguments, keywords)), sys.path
        try:
            self._send(task)
            outcomes = self._collect(time.monotonic() + deadline)
            if any(outcome is None for outcome in outcomes.values()):
                outcomes = {**outcomes, **self._explain_absent(outcomes, deadline)}
                self.close()
        except (
            BaseException
        ):  # Ctrl-C too: what is started in part, or has answers that nobody has read, serves no other run
            self.close()
            raise
        return [outcome for _, outcome in sorted(outcomes.items()) if outcome is not None]

    def _send(self, task: tuple[str, bytes, list[str]]) -> None:
        """Give every rank the *task*, and start them where there are none."""
        if not self._ranks:
            self._job = new_job_key()
            for rank in range(self.size):
                self._ranks.append(_Rank(rank, self.size, self._job, self._environment, self._original))
        for each in self._ranks:
            each.new_output()
            with contextlib.suppress(BrokenPipeError):  # it died since the last run; its closed answers say so below
                each.tasks.send(task)

    def _collect(self, until: float) -> dict[int, Outcome | None]:
        """Wait for all answers; a rank that died or is late has None."""
        outcomes: dict[int, Outcome | None] = {}
        with selectors.DefaultSelector() as selector:
            for rank in self._ranks:
                selector.register(rank.answers, selectors.EVENT_READ, rank)
            while len(outcomes) < self.size and (left := until - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    rank = key.data
                    selector.unregister(rank.answers)
                    outcomes[rank.rank] = self._outcome_of(rank)
                    if outcomes[rank.rank] is None:  # the others may wait for it for ever
                        until = min(until, time.monotonic() + GRACE)
        return {rank.rank: outcomes.get(rank.rank) for rank in self._ranks}

    def _outcome_of(self, rank: _Rank) -> Outcome | None:
        try:
            answer = rank.answers.recv_bytes()
        except (EOFError, OSError):
            rank.hung_up = True  # the process is ending, if it has not ended yet
            return None
        value, error = pickle.loads(answer)
        output = rank.new_output()
        if error is not None and output:
            error = f"{error}\nrank {rank.rank} printed:\n{output}"
        return Outcome(rank.rank, value, error, output)

    def _explain_absent(self, outcomes: Mapping[int, Outcome | None], deadline: float) -> dict[int, Outcome]:
        """Say of each rank without an answer how it died, or where it was when its time was over."""
        absent = [rank for rank in self._ranks if outcomes[rank.rank] is None]
        died = [rank for rank in absent if rank.hung_up]
        late = [rank for rank in absent if not rank.hung_up]
        patience = f"{GRACE:g} s after rank {died[0].rank} died" if died else f"after {deadline:g} s"
        known = self._describe({rank.rank: rank.process.pid for rank in late}) if late else {}
        unknown = [rank for rank in late if rank.rank not in known]
        for rank in unknown:
            rank.process.send_signal(signal.SIGUSR1)  # it writes its stacks
        if unknown:
            time.sleep(_LAST_WORDS)
        texts = {rank.rank: rank.how_it_ended() for rank in died}
        for rank in late:
            rank.process.kill()
            told = f"\n{known[rank.rank]}" if rank.rank in known else ""
            texts[rank.rank] = f"rank {rank.rank} had not answered {patience}{told}"
        for rank in absent:
            if output := rank.new_output():
                texts[rank.rank] += f"\nrank {rank.rank} printed:\n{output}"
        return {rank.rank: Outcome(rank.rank, None, texts[rank.rank], is_late=rank in late) for rank in absent}

    def close(self) -> None:
        """End all rank processes."""
        ranks, self._ranks = self._ranks, []
        for rank in ranks:
            rank.tasks.close()  # at whose end the process ends
        for rank in ranks:
            rank.end()

    def __enter__(self) -> RankPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
