"""Who listens to which topic, and what came before anybody did. On the control thread only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from shim.core.control.loop import report

_MOST_TOPICS = 4096
_MOST_KEPT = 4096  # messages of a topic, of which the oldest are dropped


class Topics:
    """The handlers of a Control."""

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
