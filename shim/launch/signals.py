"""The signals that a launcher passes on to what it has started."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[int]:
    """Have *handler* take the signals that are passed on; yields a file descriptor that is readable after each.

    A signal that is ignored here, such as SIGHUP under nohup, stays so.
    """
    wakes, wakened = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(wakened, False)
    before = {number: signal.getsignal(number) for number in PASSED_ON}
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
