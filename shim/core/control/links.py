"""How a rank's own end reaches the hub: over a connection, or, on rank 0, by a call on the hub's thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from shim.core.control.authentication import SessionKeys
from shim.core.control.frames import Kind
from shim.core.control.hub import Hub
from shim.core.sockets.connection import Connection, Heart, How
from shim.core.sockets.frames import packed_text
from shim.core.sockets.loop import Loop

_TO_SEND = 1.0  # seconds that leaving waits at most


class Link(Protocol):
    """What a Control needs of the way to the hub. ``send`` never waits; ``leave`` waits for a moment until *why* has been told."""

    loop: Loop

    def send(self, kind: Kind, *pieces: bytes) -> None: ...
    def leave(self, why: str) -> None: ...
    def flush(self) -> None: ...


class HubLink:
    """Rank 0's own. The hub goes on after rank 0 has left, until the others have, or the process ends."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.loop = hub.loop

    def send(self, kind: Kind, *pieces: bytes) -> None:
        self.loop.call(self.hub.handle, 0, kind, b"".join(pieces))

    def leave(self, why: str) -> None:
        self.send(Kind.LEAVE, packed_text(why))
        self.flush()

    def flush(self) -> None:
        """Wait for a moment until the hub has sent all that it has for others."""
        self.loop.call_and_wait(self.hub.tell_endings, _TO_SEND)
        _wait_until(lambda: not self.hub.unsent(), self.loop)


class RankLink:
    """Any other rank's: a connection on a loop of its own."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        keys: SessionKeys,
        receive: Callable[[Kind, bytes], None],
        lost: Callable[[How, str, float], None],
        gap: float,
    ) -> None:
        self.loop = loop
        self._lost = lost
        self._ended = threading.Event()
        self._is_leaving = False
        self._heart = Heart(loop, Kind.BEAT, gap, self._cut_off)
        self.connection = Connection(loop, sock, Kind, (keys.to_hub, keys.from_hub), receive, self._end)
        loop.call(self._start)

    def _start(self) -> None:
        self.connection.start()
        self._heart.add(self.connection)

    def send(self, kind: Kind, *pieces: bytes) -> None:
        self.connection.send(kind, *pieces)

    def leave(self, why: str) -> None:
        self._is_leaving = True
        if not self._ended.is_set():
            self.send(Kind.LEAVE, packed_text(why))
            self.flush()
            self.loop.call(self.connection.end_sending)
            _wait_until(self._ended.is_set, self.loop)  # the hub has read it when it closes its end
        self.loop.stop()
        self.loop.join(_TO_SEND)

    def flush(self) -> None:
        _wait_until(lambda: not self.connection.unsent, self.loop)

    def _cut_off(self, connection: Connection[Kind], silence: float) -> None:
        connection.close()
        self._end(How.CUT_OFF, "", silence)

    def _end(self, how: How, why: str, silence: float = 0.0) -> None:
        self._heart.remove(self.connection)
        self._ended.set()
        if not self._is_leaving:
            self._lost(how, why, silence)


def _wait_until(is_done: Callable[[], object], loop: Loop) -> None:
    """Wait a second at most, and not for a thread that has ended."""
    pause, deadline = 0.0001, time.monotonic() + _TO_SEND
    while not is_done() and loop.is_running and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
