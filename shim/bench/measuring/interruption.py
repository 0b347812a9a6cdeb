"""What ends a run early: signals, as an exception, so that everything that was started is put away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
