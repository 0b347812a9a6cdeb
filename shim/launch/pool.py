"""Rank processes that are started once and run one function after another, all ranks at the same time."""

from __future__ import annotations

import codecs
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import IO, Any, NamedTuple

from shim.launch.endings import GRACE
from shim.launch.identity import new_job_key, rank_environment, rank_variables
from shim.launch.original import Copy, Original, program_of

_MOST_OUTPUT = 1 << 20  # bytes of a rank's output that are shown at once
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
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.output: IO[bytes]
        self.process: subprocess.Popen[bytes] | Copy
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:  # ours stay where nothing fails
            self.output = ours.enter_context(tempfile.TemporaryFile())
            tasks_in, tasks_out = os.pipe()
            self.tasks = ours.enter_context(Connection(tasks_out, readable=False))
            theirs.callback(os.close, tasks_in)
            answers_in, answers_out = os.pipe()
            self.answers = ours.enter_context(Connection(answers_in, writable=False))
            theirs.callback(os.close, answers_out)
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
            ours.pop_all()

    def new_output(self) -> str:
        """Return what the process has printed since this was last asked."""
        end = os.fstat(self.output.fileno()).st_size
        begin = max(self._printed, end - _MOST_OUTPUT)
        left_out = begin - self._printed
        self._printed = end
        text = self._decoder.decode(os.pread(self.output.fileno(), end - begin, begin))
        return f"({left_out} bytes before this are not shown)\n{text}" if left_out else text

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

    ``run`` waits for all ranks. Who wants to do something meanwhile calls ``begin``, and ``answers`` until ``is_busy`` is false. Where that
    is interrupted or a rank dies, it calls ``give_up`` or ``close``.
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
        self._awaited: dict[Connection, _Rank] = {}  # by their answers, which have not come
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
        self.begin(target, *arguments, **keywords)
        until = time.monotonic() + deadline
        patience = f"after {deadline:g} s"
        outcomes: dict[int, Outcome] = {}
        try:
            while self.is_busy and (left := until - time.monotonic()) > 0:
                for rank, outcome in self.answers(left).items():
                    if outcome is not None:
                        outcomes[rank] = outcome
                    elif (soon := time.monotonic() + GRACE) < until:  # the others may wait for it for ever
                        until, patience = soon, f"{GRACE:g} s after rank {rank} died"
            if len(outcomes) < self.size:
                outcomes |= self.give_up(patience)
        except BaseException:  # Ctrl-C too: ranks with answers that nobody has read serve no other run
            self.close()
            raise
        return [_with_output_in_error(outcome) for _, outcome in sorted(outcomes.items())]

    def begin(self, target: str | Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        """Call *target* on every rank at once, as ``run`` does, and return without waiting."""
        name = target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"
        task = name, pickle.dumps((arguments, keywords)), sys.path
        try:
            self._send(task)
        except BaseException:
            self.close()
            raise

    @property
    def is_busy(self) -> bool:
        """Whether a rank has neither answered nor died."""
        return bool(self._awaited)

    def answers(self, seconds: float) -> dict[int, Outcome | None]:
        """Wait up to *seconds* for an answer, and return what came, by rank; a rank that died has None."""
        ready = wait(list(self._awaited), seconds)
        ranks = [self._awaited.pop(answers) for answers in list(self._awaited) if answers in ready]
        return {rank.rank: self._outcome_of(rank) for rank in ranks}

    def new_output(self) -> dict[int, str]:
        """Return what each rank has printed since this was last asked, or since it answered."""
        return {rank.rank: rank.new_output() for rank in self._ranks}

    def interrupt(self) -> None:
        """Send SIGINT to the ranks that have not answered. They ignore it unless *target* handles it."""
        for rank in self._awaited.values():
            rank.process.send_signal(signal.SIGINT)

    def _send(self, task: tuple[str, bytes, list[str]]) -> None:
        """Give every rank the *task*, and start them where there are none."""
        if not self._ranks:
            self._job = new_job_key()
            for rank in range(self.size):
                self._ranks.append(_Rank(rank, self.size, self._job, self._environment, self._original))
        for each in self._ranks:
            each.new_output()
            with contextlib.suppress(BrokenPipeError):  # it died since the last run; its closed answers say so
                each.tasks.send(task)
        self._awaited = {rank.answers: rank for rank in self._ranks}

    def _outcome_of(self, rank: _Rank) -> Outcome | None:
        try:
            answer = rank.answers.recv_bytes()
        except (EOFError, OSError):
            rank.hung_up = True  # the process is ending, if it has not ended yet
            return None
        value, error = pickle.loads(answer)
        return Outcome(rank.rank, value, error, rank.new_output())

    def give_up(self, patience: str) -> dict[int, Outcome]:
        """End all ranks, and say of each without an answer how it died, or where it was; *patience* says how long it was waited for."""
        late = list(self._awaited.values())
        died = [rank for rank in self._ranks if rank.hung_up]
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
        outcomes = {
            rank.rank: Outcome(rank.rank, None, texts[rank.rank], rank.new_output(), is_late=rank in late)
            for rank in (*died, *late)
        }
        self.close()
        return outcomes

    def close(self) -> None:
        """End all rank processes."""
        ranks, self._ranks, self._awaited = self._ranks, [], {}
        for rank in ranks:
            rank.tasks.close()  # at whose end the process ends
        for rank in ranks:
            rank.end()

    def __enter__(self) -> RankPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _with_output_in_error(outcome: Outcome) -> Outcome:
    if outcome.error is None or not outcome.printed:
        return outcome
    return outcome._replace(error=f"{outcome.error}\nrank {outcome.rank} printed:\n{outcome.printed}")
