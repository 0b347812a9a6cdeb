"""How rank processes end: which signals they are sent, after how long they are killed, with whom they die, and whose failure was the first."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, TypeVar

from shim.errors import PeerLostError

GRACE = 2.0  # seconds between asking a rank that runs a function of Python to end and killing it
COMMAND_GRACE = 5.0  # seconds between asking any other program and killing it, which may have more to put away
NOTICE = 1.0  # seconds in which the others may see by themselves that a rank failed, and say so
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


class Ending(Protocol):
    """What ``first_to_fail`` asks of a rank."""

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a death by signal; None while it runs."""

    @property
    def was_told_to_end(self) -> bool:
        """Whether it was told to end before it had ended by itself."""

    @property
    def has_raised(self) -> bool:
        """Whether it has said what it raised, after which it may take long to end."""

    @property
    def is_victim(self) -> bool:
        """Whether it failed only because another one had gone."""

    @property
    def failed_at(self) -> float:
        """When it failed, in seconds of ``time.monotonic``."""


_Rank = TypeVar("_Rank", bound=Ending)


def first_to_fail(ranks: Sequence[_Rank]) -> _Rank | None:
    """Return which of *ranks* failed first and was pulled down by no other, or where all were, the first; None: all ended well."""
    failed = [rank for rank in ranks if rank.status and not rank.was_told_to_end]
    causes = [rank for rank in failed if not rank.is_victim]
    if failed and not causes:  # its own end took longer than that of the ranks it pulled down
        causes = [rank for rank in ranks if rank.has_raised and not rank.is_victim]
    ended = [rank for rank in ranks if rank.status]
    return min(causes or failed or ended, key=lambda rank: rank.failed_at, default=None)


def came_of_another(error: BaseException | None) -> bool:
    """Tell whether *error* was raised because another rank had gone, or while that was dealt with."""
    while error is not None:
        if isinstance(error, PeerLostError):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def how_it_ended(status: int) -> str:
    """Return what to say of a process that ended with *status*, which is negative for a death by signal."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # one of those that have no name
        return f"was killed by signal {-status}"


def dying_with(parent: int, *, in_group: bool = False) -> Callable[[], None]:
    """Return what has the kernel kill the process that calls it when its *parent* dies, however that dies; and puts it, with *in_group*,
    into a process group of its own.

    The library is looked for here: after a fork only the calls remain.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_the_new_process() -> None:
        if in_group:
            os.setpgid(0, 0)
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel was told
            os._exit(1)

    return in_the_new_process


@contextmanager
def signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[int]:
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
