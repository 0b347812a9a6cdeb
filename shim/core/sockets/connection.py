"""One end of a connection: frames in and out over a socket that never blocks, and the signs that the other end is there."""

from __future__ import annotations

import errno
import math
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Generic, TypeVar

from shim.core.sockets.frames import Opening, Sealing
from shim.core.sockets.loop import Loop

_BEAT_EVERY = 1.0  # seconds
_MOST_UNSENT = 256 << 20  # bytes; whoever lets so many wait has stopped reading
_CUT_OFF = {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
# Of tcp_info in linux/tcp.h: milliseconds since data and an ACK were sent, and came.
_TCP_INFO_TIMES = struct.Struct("<4I")
_TCP_INFO_OFFSET = 44
_Kind = TypeVar("_Kind", bound=IntEnum)


class How(IntEnum):
    """How the other end went."""

    LEFT = 0
    DIED = 1
    CUT_OFF = 2
    BROKE = 3


class Connection(Generic[_Kind]):
    """A socket that *loop* serves, over which frames of *kinds* come. *keys* are for the frames sent and for those received.

    *on_frame* gets each frame, and *on_lost*, at most once, how the other end was lost and, for How.BROKE, why; both on the loop's thread.
    ``send`` may be called by any thread. After ``close``, or a loss, nothing is called any more, and what is sent is dropped.
    """

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        kinds: type[_Kind],
        keys: tuple[bytes | None, bytes | None],
        on_frame: Callable[[_Kind, bytes], None],
        on_lost: Callable[[How, str], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._sealing, self._opening = Sealing(keys[0]), Opening(kinds, keys[1])
        self._on_frame, self._on_lost = on_frame, on_lost
        self._lock = threading.Lock()  # held for the moments in which frames are made and put into the socket's buffer
        self._out: deque[memoryview] = deque()
        self._is_open = True
        self.unsent = 0  # bytes
        self.last_sent = self.last_heard = time.monotonic()
        self._unanswered_since = math.inf
        self.crosses_network = sock.family != socket.AF_UNIX
        sock.setblocking(False)

    def start(self, already: bytes = b"") -> None:
        """Begin to serve the socket, of which *already* was received. On the loop's thread."""
        self._loop.add(self._socket, self._ready)
        if already:
            self._take(already)

    def take_bodies_of(self, bytes: int) -> None:
        """Take frames with bodies of so many bytes at most from now on. On the loop's thread, or before the start."""
        self._opening.largest = bytes

    def send(self, kind: IntEnum, *pieces: bytes) -> None:
        """Send a frame, now or as soon as the socket takes it. Never waits."""
        with self._lock:
            if not self._is_open:
                return
            waited = bool(self._out)
            for piece in self._sealing.seal(kind, pieces):
                if piece:
                    self._out.append(memoryview(piece))
                    self.unsent += len(piece)
            self.last_sent = time.monotonic()
            self._unanswered_since = min(self._unanswered_since, self.last_sent)
            error = None if waited else self._send_some()
            begins_to_wait = not waited and bool(self._out)
            has_stopped = self.unsent > _MOST_UNSENT
        if error is not None:
            self._loop.call(self._fail, error)
        elif has_stopped:
            self._loop.call(self.lose, How.BROKE, f"it left {_MOST_UNSENT >> 20} MiB unread")
        elif begins_to_wait:
            self._loop.call(self._loop.watch, self._socket, True)

    def close(self) -> None:
        """Close the socket. On the loop's thread."""
        with self._lock:
            self._is_open = False
            self._out.clear()
            self.unsent = 0
        self._loop.remove(self._socket)

    def end_sending(self) -> None:
        """Tell the other end that nothing more comes: it reads on to the last frame, which closing might destroy. On the loop's thread."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has gone already

    def silence(self) -> float:
        """Return the seconds since the last sign of the other host.

        The kernel there acknowledges heartbeats even where its process is stopped, or busy without letting a thread of Python run. Neither is a loss.
        """
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            _, _, data, acknowledgement = _TCP_INFO_TIMES.unpack_from(info, _TCP_INFO_OFFSET)
        except (OSError, struct.error):
            return time.monotonic() - self.last_heard
        return float(min(data, acknowledgement) / 1000)

    def unanswered_since(self) -> float:
        """Return when the first frame was sent that the other host has given no sign of; infinity where there is none."""
        sign = time.monotonic() - self.silence()
        with self._lock:
            if sign >= self._unanswered_since:
                self._unanswered_since = self.last_sent if self.last_sent > sign else math.inf
            return self._unanswered_since

    def _ready(self, events: int) -> None:
        if events & 2:  # selectors.EVENT_WRITE
            with self._lock:
                error = self._send_some()
                is_done = not self._out
            if error is not None:
                self._fail(error)
                return
            if is_done:
                self._loop.watch(self._socket, False)
        if events & 1:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        if not data:
            self.lose(How.DIED, "")
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        self.last_heard = time.monotonic()
        try:
            for kind, body in self._opening.feed(data):
                if not self._is_open:
                    return
                self._on_frame(kind, body)
        except (ValueError, struct.error) as error:
            self.lose(How.BROKE, f"a frame came that cannot be read: {error}")
        except Exception as error:  # a mistake of ours: the other end is not to wait for an answer
            self.lose(How.BROKE, f"a frame came that could not be served: {error!r}")
            raise

    def _send_some(self) -> OSError | None:
        while self._out:
            try:
                sent = self._socket.sendmsg([self._out[number] for number in range(min(len(self._out), 64))])
            except (BlockingIOError, InterruptedError):
                return None
            except (BrokenPipeError, ConnectionResetError):
                self._out.clear()
                self.unsent = 0
                return None  # what came before the end is still to be read: a word of leaving, for one
            except OSError as error:
                return error
            self.unsent -= sent
            while sent:
                if sent < len(self._out[0]):
                    self._out[0] = self._out[0][sent:]
                    break
                sent -= len(self._out.popleft())
        return None

    def _fail(self, error: OSError) -> None:
        self.lose(How.CUT_OFF if error.errno in _CUT_OFF else How.DIED, "")

    def lose(self, how: How, why: str) -> None:
        """Close the socket and tell that the other end is lost. On the loop's thread."""
        if self._is_open:
            self.close()
            self._on_lost(how, why)


class Heart(Generic[_Kind]):
    """Sends frames of the kind *beat* on the connections of a loop when they are idle, and tells *on_silence* to which nothing was answered
    for *gap* seconds. On the loop's thread.
    """

    def __init__(
        self, loop: Loop, beat: _Kind, gap: float, on_silence: Callable[[Connection[_Kind], float], None]
    ) -> None:
        self._loop = loop
        self._beat_kind = beat
        self._gap = gap
        self._on_silence = on_silence
        self._connections: set[Connection[_Kind]] = set()
        self._awake_since = self._last = time.monotonic()
        self._is_beating = False

    def add(self, connection: Connection[_Kind]) -> None:
        """Watch *connection*, where it needs that: of a unix socket the kernel tells at once when the other end dies."""
        if connection.crosses_network:
            self._connections.add(connection)
        if self._connections and not self._is_beating:
            self._is_beating = True
            self._awake_since = self._last = time.monotonic()
            self._loop.call_later(_BEAT_EVERY / 4, self._beat)

    def remove(self, connection: Connection[_Kind]) -> None:
        self._connections.discard(connection)

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._last > _BEAT_EVERY:
            self._awake_since = now  # this process itself was stopped: it sent nothing that could be acknowledged
        self._last = now
        for connection in list(self._connections):
            if now - connection.last_sent >= _BEAT_EVERY:
                connection.send(self._beat_kind)
            silence = now - max(connection.unanswered_since(), self._awake_since)
            if silence > self._gap:
                self._on_silence(connection, silence)
        self._is_beating = bool(self._connections)
        if self._is_beating:
            self._loop.call_later(_BEAT_EVERY / 4, self._beat)
