"""Steps over a link that one thread begins and another one may end."""

from __future__ import annotations

import time
from collections.abc import Generator

from shim.core.engines.network.link import LinkError, Pending


class Drive:
    """Carries on with *steps*, which yield each transfer they wait for; by one thread at a time."""

    def __init__(self, steps: Generator[Pending, None, None]) -> None:
        self._steps = steps
        self._pending: Pending | None = None
        self._has_ended = False
        self._error: Exception | None = None  # what ended it, which later waits raise again

    def wait(self, seconds: float) -> bool:
        """Carry on for up to *seconds* and return whether all is done. Raises what a step raises, and LinkError."""
        if self._error is not None:
            raise self._error
        deadline = time.monotonic() + seconds
        try:
            while not self._has_ended:
                if self._pending is not None and not self._pending.wait(max(0.0, deadline - time.monotonic())):
                    return False
                self._pending = self._next()
                self._has_ended = self._pending is None
        except Exception as error:
            self._error = error
            raise
        return True

    def _next(self) -> Pending | None:
        try:
            return next(self._steps, None)
        except KeyboardInterrupt:  # the steps are over, and not done
            self._error = LinkError("it was interrupted in the middle of a step")
            raise
