"""What a rank waits for and listens to: the hub's answers, other ranks' answers, and the messages of a topic."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from shim.core.control.frames import Kind
from shim.core.sockets.loop import report

_STEP = 0.1  # seconds, after which Ctrl-C is looked at
_MOST_TOPICS = 4096
_MOST_KEPT = 4096  # messages of a topic, of which the oldest are dropped


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


class Topics:
    """Who listens to which topic, and what came before anybody did. On the control thread only."""

    def __init__(self) -> None:
        self._handlers: dict[str, Callable[[int, bytes], None]] = {}
        self._kept: dict[str, deque[tuple[int, bytes]]] = {}
        self._forgotten: deque[str] = deque(maxlen=_MOST_TOPICS)  # what comes late for these is dropped

    def listen(self, topic: str, handler: Callable[[int, bytes], None]) -> None:
        self._handlers[topic] = handler
        if topic in self._forgotten:
            self._forgotten.remove(topic)
        for sender, payload in self._kept.pop(topic, ()):
            report(handler, sender, payload)

    def forget(self, topic: str) -> None:
        if self._handlers.pop(topic, None) is not None:
            self._forgotten.append(topic)
        self._kept.pop(topic, None)

    def tell(self, topic: str, sender: int, payload: bytes) -> None:
        handler = self._handlers.get(topic)
        if handler is not None:
            report(handler, sender, payload)
            return
        if topic in self._forgotten:
            return
        if topic not in self._kept and len(self._kept) >= _MOST_TOPICS:
            del self._kept[next(iter(self._kept))]
        self._kept.setdefault(topic, deque(maxlen=_MOST_KEPT)).append((sender, payload))
