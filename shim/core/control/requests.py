"""What a thread waits for: the hub's answer to a request, or other ranks' answers to a question."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from shim.core.control.frames import Kind

_STEP = 0.1  # seconds, after which Ctrl-C is looked at


class Request:
    """A question to the hub. The first answer counts."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self.answer: tuple[Kind, bytes] = (Kind.BEAT, b"")

    def finish(self, kind: Kind, body: bytes) -> None:
        if not self._done.is_set():
            self.answer = (kind, body)
            self._done.set()

    def wait(self, deadline: float) -> bool:
        """Wait for the answer until *deadline*, and tell whether it came. Ctrl-C interrupts."""
        while not self._done.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._done.wait(min(left, _STEP))
        return True

    def leave_out(self, rank: int) -> None:
        """Take note that *rank* is gone; the hub decides what that means for a request."""


class Inquiry(Request):
    """A question to *ranks*: done when each has answered, has said that it cannot, or is gone."""

    def __init__(self, ranks: Sequence[int]) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._open = set(ranks)
        self.answers: dict[int, bytes] = {}
        if not self._open:
            self._done.set()

    def take(self, rank: int, answer: bytes | None) -> None:
        with self._lock:
            if rank in self._open and answer is not None:
                self.answers[rank] = answer
        self.leave_out(rank)

    def leave_out(self, rank: int) -> None:
        with self._lock:
            self._open.discard(rank)
            if not self._open:
                self._done.set()
