"""Transfers of MPI that are under way."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from shim.core.engines.network.link import LinkError

_SHORTEST_SPIN = 3e-4  # seconds; longer than 8 bytes take between hosts
_LONGEST_SPIN = 1.0
_SLOWEST = 1e8  # bytes per second that a transfer is assumed to make; it is looked after without pause for so long
_FIRST_PAUSE = 2e-5
_LONGEST_PAUSE = 1e-3


class Transfer:
    """One transfer, of one or several MPI requests, of *count* bytes. It keeps their memory until it has ended.

    MPI moves bytes only while somebody calls it. A wait calls it without pause for about as long as the transfer itself takes,
    but gives the processor to others that want it. Then the other ranks are late, and it pauses, for longer and longer.
    """

    __slots__ = ("_at_end", "_error", "_failed", "_pause", "_requests", "_spins_until", "_tests")

    def __init__(
        self,
        requests: Sequence[Any],
        count: int,
        failed: type[Exception],
        at_end: Callable[[Transfer], None],
    ) -> None:
        self._requests = list(requests)
        self._failed = failed
        self._at_end = at_end
        self._error: LinkError | None = None
        self._tests = threading.Lock()  # held by the thread that tests the requests
        self._pause = _FIRST_PAUSE
        self._spins_until = time.monotonic() + min(_SHORTEST_SPIN + count / _SLOWEST, _LONGEST_SPIN)

    def wait(self, seconds: float) -> bool:
        if self._has_ended():
            return True
        now = time.monotonic()
        until = now + seconds
        while now < until:
            if now < self._spins_until:
                os.sched_yield()
            else:
                time.sleep(min(self._pause, until - now))
                self._pause = min(self._pause * 1.1, _LONGEST_PAUSE)
            if self._has_ended():
                return True
            now = time.monotonic()
        return False

    def _has_ended(self) -> bool:
        if self._error is not None:
            raise self._error
        requests = self._requests
        if not requests:
            return True
        if not self._tests.acquire(blocking=False):
            return False
        try:
            while requests and requests[-1].Test():
                requests.pop()
                if not requests:
                    self._at_end(self)
        except self._failed as error:
            self._error = LinkError(str(error))
            raise self._error from error
        finally:
            self._tests.release()
        return not requests

    def give_up(self) -> None:
        """Cancel what MPI can cancel: receives. The rest may go on, in memory that must stay."""
        for request in self._requests:
            try:
                request.Cancel()
            except self._failed:  # it is part of a collective
                continue
