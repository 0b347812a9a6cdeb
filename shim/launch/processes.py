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
from shim.launch.identity import SETTABLE, launcher_variables, new_job_key, rank_environment
from shim.launch.output import OutputClosed, RankOutput, prefix_of, write_all
from shim.launch.tracebacks import what_it_says, without_our_frames

__all__ = ["descriptors_needed", "run_ranks"]

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDOUT, _STDERR = 1, 2
_OWN_DESCRIPTORS = 16  # of this process, and for the start of one rank
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

    def __init__(
        self, rank: int, command: Sequence[str], environment: Mapping[str, str], log_dir: Path | None, log_mode: str
    ) -> None:
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
            RankOutput(rank, stream, to, log_dir and log_dir / f"rank{rank}.{name}", log_mode)
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

    @property
    def last_words(self) -> tuple[bytes, ...]:
        """What its traceback says, as far as that is equal on ranks that say the same; nothing where it wrote none."""
        return what_it_says(self.outputs[-1].last_lines) if self.has_raised else ()

    def show_last_words(self, told_by: int) -> None:
        """Show the traceback that is held back, or that the rank *told_by* has shown the same."""
        same = None if told_by == self.rank else b"The traceback of rank %d, here too." % told_by
        self.outputs[-1].show_held(same)

    def close(self) -> None:
        self.process.wait()
        os.close(self.pidfd)
        for output in self.outputs:
            output.close()


def descriptors_needed(size: int, log_dir: Path | None) -> int:
    """Return how many files ``run_ranks`` opens for *size* ranks, about."""
    return _OWN_DESCRIPTORS + size * (3 if log_dir is None else 5)


def run_ranks(
    command: Sequence[str],
    endpoints: Sequence[str],
    environment: Mapping[str, str] | None = None,
    log_dir: Path | None = None,
    grace: float = COMMAND_GRACE,
    *,
    keep_going: bool = False,
    max_restarts: int = 0,
) -> int:
    """Run *command* as a rank for each of *endpoints* until all have ended, and return the exit status for the launcher.

    That is 0 when all ranks ended with 0, else the first failing rank's, 128 and the signal's number for a death by
    signal. When a rank fails the others are sent SIGTERM a second later, and SIGKILL after *grace* seconds, unless they are to
    *keep_going*; then all are started again, at most *max_restarts* times. Their output goes to this process's, and with *log_dir*
    also to files there. *environment* is added to this process's; of what the ranks are told it replaces what is ``SETTABLE``.
    Call it from the main thread, as it takes the signals.
    """
    run, size, status = new_job_key(), len(endpoints), 0
    chosen = {name: value for name, value in (environment or {}).items() if name in SETTABLE}
    for restart in range(max_restarts + 1):
        job = f"{run}.{restart}"
        environments = [
            rank_environment(rank, size, job, environment)
            | launcher_variables(rank, size, run, endpoints, restart, max_restarts)
            | chosen
            for rank in range(size)
        ]
        ranks = _Ranks(grace, keep_going)
        status = _run_once(ranks, command, environments, log_dir, "ab" if restart else "wb")
        if not ranks.may_start_again or restart == max_restarts:
            break
        with suppress(OutputClosed):
            text = f"shim run: all ranks are started again (restart {restart + 1} of {max_restarts})\n"
            write_all(_STDERR, text.encode())
    return status


def _run_once(
    ranks: _Ranks,
    command: Sequence[str],
    environments: Sequence[Mapping[str, str]],
    log_dir: Path | None,
    log_mode: str,
) -> int:
    """Start the ranks, see all of them end, and return the launcher's exit status."""
    with ExitStack() as stack:
        signals = stack.enter_context(_signals_to(ranks.take_signal))
        stack.callback(ranks.close)
        for rank, environment in enumerate(environments):
            try:
                ranks.add(_Rank(rank, command, environment, log_dir, log_mode))
            except OSError as error:  # no more processes, memory or files
                return _give_up(f"rank {rank} cannot be started: {error}")
        try:
            ranks.watch(signals)
            return ranks.conclude()
        except OutputClosed as closed:
            ranks.end_all(signal.SIGKILL)
            if not closed.args:
                return 128 + signal.SIGPIPE
            return _give_up(f"what the ranks print cannot be written: {closed}")


def _give_up(why: str) -> int:
    with suppress(OutputClosed):
        write_all(_STDERR, f"shim run: {why}\n".encode())
    return 1


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

    def __init__(self, grace: float, keep_going: bool) -> None:
        self.may_start_again = False  # a rank has failed, and nobody asked for an end
        self._grace = grace
        self._keep_going = keep_going
        self._ranks: list[_Rank] = []
        self._selector = selectors.DefaultSelector()
        self._received: list[int] = []
        self._told: dict[tuple[bytes, ...], int] = {}  # tracebacks, and which rank has shown each
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
            held_until = min(rank.outputs[-1].held_until for rank in self._ranks)
            next_step = min(self._term_at, self._kill_at, held_until)
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
            if time.monotonic() >= held_until:
                self._show_held(time.monotonic())
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
        rank.show_last_words(self._told.setdefault(rank.last_words, rank.rank))
        if rank.status and self._keep_going and not self._is_to_end():
            text = f"shim run: rank {rank.rank} {how_it_ended(rank.status)}; the others go on\n"
            write_all(_STDERR, text.encode())
        elif rank.status and not self._keep_going and self._kill_at == self._term_at == float("inf"):
            self._term_at = time.monotonic() + NOTICE

    def _show_held(self, until: float) -> None:
        for rank in self._ranks:
            if rank.outputs[-1].held_until <= until:
                rank.outputs[-1].show_held()

    def _is_to_end(self) -> bool:
        return any(number in _ENDING for number in self._received)

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
        if not self._is_to_end():
            if first.was_told_to_end:
                status = 1  # it was about to end with its traceback
            self.may_start_again = True
            same = [
                rank.rank for rank in self._ranks if rank is not first and rank.last_words == first.last_words != ()
            ]
            _tell(first, status, same, alone=len(self._ranks) == 1)
        return 128 - status if status < 0 else status

    def close(self) -> None:
        """End what is left, and reap all."""
        if any(rank.ended_at is None for rank in self._ranks):
            self.end_all(signal.SIGKILL)
        for rank in self._ranks:
            rank.close()
        self._selector.close()


def _tell(first: _Rank, status: int, same: Sequence[int], alone: bool) -> None:
    """Say how the rank that failed *first* did, and which others have told the *same*."""
    how = how_it_ended(status)
    if alone:
        write_all(_STDERR, f"shim run: rank 0 {how}\n".encode())
        return
    lines = without_our_frames(first.outputs[-1].last_lines)
    what = "; what it wrote to stderr last:" if lines else ", and wrote nothing to stderr"
    prefix = prefix_of(first.rank, _STDERR)
    text = f"shim run: rank {first.rank} failed first: it {how}{what}\n".encode()
    others = f"shim run: rank{'s' * (len(same) > 1)} {', '.join(map(str, same))}: the same\n" if same else ""
    write_all(_STDERR, text + b"".join(prefix + line + b"\n" for line in lines) + others.encode())
