"""Ranks of a command: started together, watched, sent the launcher's signals, and ended when one of them fails."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from shim.launch.endings import COMMAND_GRACE, NOTICE, dying_with, first_to_fail, how_it_ended
from shim.launch.identity import new_job_key, rank_environment
from shim.launch.output import OutputClosed, RankOutput, prefix_of, write_all

__all__ = ["run_ranks"]

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDOUT, _STDERR = 1, 2
_VICTIM = re.compile(rb"[ |]*[\w.]*PeerLostError(:|$)")  # a traceback's line of the error, which hints may follow


def _has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
        return True
    return False


class _Rank:
    """One process in a group of its own, so that a signal reaches it and what it has started once.

    In a session of its own too where there is a terminal, which stops what reads from it in another group than the shell's. Elsewhere not:
    Linux schedules sessions as wholes, so that a rank that waits cannot yield its processor to one of another session.
    """

    def __init__(self, rank: int, command: Sequence[str], environment: Mapping[str, str], log_dir: Path | None) -> None:
        self.rank = rank
        self.ended_at: float | None = None
        self.status: int | None = None  # as of subprocess: negative for a death by signal
        self.was_told_to_end = False
        has_terminal = _has_terminal()
        self.process = subprocess.Popen(
            command,
            stdin=None if rank == 0 else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=has_terminal,
            preexec_fn=dying_with(os.getpid(), in_group=not has_terminal),
        )
        self.outputs = [
            RankOutput(rank, stream, to, log_dir and log_dir / f"rank{rank}.{name}")
            for stream, to, name in (
                (self.process.stdout, _STDOUT, "stdout"),
                (self.process.stderr, _STDERR, "stderr"),
            )
            if stream is not None
        ]
        self.pidfd = os.pidfd_open(self.process.pid)

    def send(self, number: int) -> None:
        """Send a signal to the process and its children; a stopped one goes on, to be able to end.

        It is not reaped before ``close``, so the id is its own.
        """
        with suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(self.process.pid, number)
            if number in _ENDING:
                os.killpg(self.process.pid, signal.SIGCONT)

    def see_end(self) -> None:
        """Note how the process ended, and leave it unreaped."""
        ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        self.ended_at = time.monotonic()
        self.status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    @property
    def has_raised(self) -> bool:
        return self.outputs[-1].traceback_since is not None

    @property
    def failed_at(self) -> float:
        """When the rank wrote its traceback, which is before others can see it gone; else when it ended."""
        since = self.outputs[-1].traceback_since
        return since if since is not None else self.ended_at or 0.0

    @property
    def is_victim(self) -> bool:
        """Tell whether this rank's traceback ends with an error that only another one's failure causes."""
        return any(_VICTIM.match(line) for line in list(self.outputs[-1].last_lines)[-4:])

    def close(self) -> None:
        self.process.wait()
        os.close(self.pidfd)
        for output in self.outputs:
            output.close()


def run_ranks(
    command: Sequence[str],
    size: int,
    environment: Mapping[str, str] | None = None,
    log_dir: Path | None = None,
    grace: float = COMMAND_GRACE,
) -> int:
    """Run *command* as *size* ranks until all have ended, and return the exit status for the launcher.

    That is 0 when all ranks ended with 0, else the first failing rank's, 128 and the signal's number for a death by
    signal. When a rank fails the others are sent SIGTERM a second later, and SIGKILL after *grace* seconds. Their output
    goes to this process's, and with *log_dir* also to files there; *environment* is added to this process's.
    Call it from the main thread, as it takes the signals.
    """
    job = new_job_key()
    with ExitStack() as stack:
        ranks = _Ranks(grace)
        signals = stack.enter_context(_signals_to(ranks.take_signal))
        stack.callback(ranks.close)
        for rank in range(size):
            ranks.add(_Rank(rank, command, rank_environment(rank, size, job, environment), log_dir))
        try:
            ranks.watch(signals)
        except OutputClosed as closed:
            ranks.end_all(signal.SIGKILL)
            if not closed.args:
                return 128 + signal.SIGPIPE
            with suppress(OutputClosed):
                write_all(_STDERR, f"shim run: what the ranks print cannot be written: {closed}\n".encode())
            return 1
        return ranks.conclude()


@contextmanager
def _signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[int]:
    """Have *handler* take the signals that are passed on; yields a file descriptor that is readable after each.

    A signal that is ignored here, such as SIGHUP under nohup, stays so.
    """
    wakes, wakened = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(wakened, False)
    before = {number: signal.getsignal(number) for number in _PASSED_ON}
    fd_before = signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
    try:
        for number, previous in before.items():
            if previous is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield wakes
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
        signal.set_wakeup_fd(fd_before)
        os.close(wakes)
        os.close(wakened)


class _Ranks:
    """All ranks of one job, and what has become of it."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._ranks: list[_Rank] = []
        self._selector = selectors.DefaultSelector()
        self._received: list[int] = []
        self._term_at = float("inf")  # when the others are told to end
        self._kill_at = float("inf")

    def add(self, rank: _Rank) -> None:
        self._ranks.append(rank)
        for number in self._received:
            rank.send(number)
        self._selector.register(rank.pidfd, selectors.EVENT_READ, rank)
        for output in rank.outputs:
            self._selector.register(output.source, selectors.EVENT_READ, output)

    def take_signal(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on. The second that asks for an end starts the grace after which the ranks are killed."""
        del frame
        self._received.append(number)
        for rank in self._ranks:
            rank.send(number)
        if sum(received in _ENDING for received in self._received) > 1:
            self._kill_at = min(self._kill_at, time.monotonic() + self._grace)

    def watch(self, signals: int) -> None:
        """Pass on output and see ranks end, until all have."""
        self._selector.register(signals, selectors.EVENT_READ)
        while any(rank.ended_at is None for rank in self._ranks):
            next_step = min(self._term_at, self._kill_at)
            timeout = None if next_step == float("inf") else max(0.0, next_step - time.monotonic())
            for key, _ in self._selector.select(timeout):
                if isinstance(key.data, RankOutput):
                    if not key.data.pass_on():
                        self._selector.unregister(key.fd)
                elif isinstance(key.data, _Rank):
                    self._selector.unregister(key.fd)
                    self._see_end(key.data)
                else:
                    os.read(signals, 512)
            if time.monotonic() >= self._term_at:
                self._term_at = float("inf")
                self._kill_at = min(self._kill_at, time.monotonic() + self._grace)
                self.end_all(signal.SIGTERM)
            if time.monotonic() >= self._kill_at:
                self._kill_at = float("inf")
                self.end_all(signal.SIGKILL)

    def _see_end(self, rank: _Rank) -> None:
        rank.see_end()
        for output in rank.outputs:
            output.pass_on_rest()
        if rank.status and self._kill_at == self._term_at == float("inf"):
            self._term_at = time.monotonic() + NOTICE

    def end_all(self, number: int) -> None:
        for rank in self._ranks:
            rank.was_told_to_end |= rank.ended_at is None
            rank.send(number)

    def conclude(self) -> int:
        """Say which rank failed first, and return the launcher's exit status."""
        first = first_to_fail(self._ranks)
        if first is None:
            return 0
        self.end_all(signal.SIGKILL)  # what the ranks themselves had started
        status = first.status or 0
        if not any(number in _ENDING for number in self._received):
            if first.was_told_to_end:
                status = 1  # it was about to end with its traceback
            _tell(first, status, alone=len(self._ranks) == 1)
        return 128 - status if status < 0 else status

    def close(self) -> None:
        """End what is left, and reap all."""
        if any(rank.ended_at is None for rank in self._ranks):
            self.end_all(signal.SIGKILL)
        for rank in self._ranks:
            rank.close()
        self._selector.close()


def _tell(first: _Rank, status: int, alone: bool) -> None:
    how = how_it_ended(status)
    if alone:
        write_all(_STDERR, f"shim run: rank 0 {how}\n".encode())
        return
    lines = list(first.outputs[-1].last_lines)
    what = "; what it wrote to stderr last:" if lines else ", and wrote nothing to stderr"
    prefix = prefix_of(first.rank, _STDERR)
    text = f"shim run: rank {first.rank} failed first: it {how}{what}\n".encode()
    write_all(_STDERR, text + b"".join(prefix + line + b"\n" for line in lines))
