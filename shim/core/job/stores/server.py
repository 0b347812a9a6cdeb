"""The server of a store: one thread of the process that serves, with one table."""

from __future__ import annotations

import errno
import math
import socket
import threading
import time
import weakref
from enum import IntEnum
from functools import partial

from shim.core.job.stores.base import timed_out
from shim.core.job.stores.table import VERSION, Operation, SharedTable, packed
from shim.core.sockets.connection import Connection, How
from shim.core.sockets.frames import LARGEST, BadFrame, Fields
from shim.core.sockets.listening import Listener, listening_at
from shim.core.sockets.loop import Loop
from shim.errors import ArgumentError, StoreLostError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_TRIES = 20  # to find a port that is free on both loopback addresses


class Answer(IntEnum):
    """What a server says to an operation; the latter two have a message as their only value."""

    DONE = 0
    REFUSED = 1
    TIMED_OUT = 2


class Server:
    """Serves a table on the sockets *listeners*, until it is closed or no longer used, or its process ends.

    Whoever can connect can read and write everything; values are never unpickled. Over Unix sockets, the same user can.
    A forked child has no part in it.
    """

    def __init__(self, listeners: list[socket.socket]) -> None:
        self.address, self.port = _own_way_to(listeners[0])
        loop = Loop(f"shim store on port {self.port}")
        service = _Service(loop)
        for listener in listeners:
            Listener(loop, listener, service.welcome).open()
        loop.start()
        self._stop = weakref.finalize(self, _stop, loop)

    def close(self) -> None:
        """Close every connection and the sockets, and end the thread."""
        self._stop()


def _stop(loop: Loop) -> None:
    loop.stop()
    loop.join(threading.TIMEOUT_MAX)


def _own_way_to(listener: socket.socket) -> tuple[str, int]:
    """Return the address and port at which this process itself reaches *listener*; a Unix socket has neither."""
    if listener.family == socket.AF_UNIX:
        return "", 0
    address, port = listener.getsockname()[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address), port


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on *port* (0: a free one): inside this host for a loopback *host*, else on all addresses.

    Raises StoreLostError where the port is taken or cannot be had.
    """
    try:
        return _inside(port) if host in _LOOPBACK else _on_all(port)
    except OSError as error:
        raise StoreLostError(
            f"the store cannot listen on port {port}: {error}\nGive port 0 for one that is free."
        ) from None


def _inside(port: int) -> list[socket.socket]:
    """Listen on both loopback addresses: which of them ``localhost`` is, a client's resolver says."""
    for _ in range(_TRIES if port == 0 else 1):
        first = listening_at(socket.AF_INET, ("127.0.0.1", port))
        try:
            return [first, listening_at(socket.AF_INET6, ("::1", first.getsockname()[1]))]
        except OSError as error:
            if error.errno in _NO_IPV6:
                return [first]
            first.close()
            failure = error
    raise failure


def _on_all(port: int) -> list[socket.socket]:
    try:
        return [listening_at(socket.AF_INET6, ("::", port), for_ipv4_too=True)]
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        return [listening_at(socket.AF_INET, ("0.0.0.0", port))]


class _Client:
    """One connection. At most one request of it is under way, which may wait for so many *seconds*, until its *deadline*."""

    line: Connection[Operation]
    has_greeted = False
    seconds = 0.0
    deadline = 0.0


class _Service:
    """All connections of a server, and its table. On the loop's thread only."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._table: SharedTable[_Client] = SharedTable(self._answer)
        self._looks: set[float] = set()  # when the waits are looked at

    def welcome(self, sock: socket.socket, address: str) -> None:
        """Greet who has connected from *address*, and serve it."""
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client = _Client()
        hear, lose = partial(self._hear, client), partial(self._lose, client)
        client.line = Connection(self._loop, sock, Operation, (None, None), hear, lose)
        client.line.take_bodies_of(len(VERSION))
        client.line.start()
        client.line.send(Operation.GREET, VERSION)

    def _hear(self, client: _Client, operation: Operation, body: bytes) -> None:
        """Carry out what *client* asks. Raises BadFrame for what no store sends, with which its connection ends."""
        if not client.has_greeted or operation is Operation.GREET:
            client.has_greeted = operation is Operation.GREET and body == VERSION
            if not client.has_greeted:
                raise BadFrame("it is no store, or one of another version")
            client.line.take_bodies_of(LARGEST)
            return
        if client in self._table.waiting or client.line.unsent:
            raise BadFrame("it asks before it has its answer")
        try:
            wait, *fields = Fields(body).values()
            client.seconds = min(int(wait) / 1e6, threading.TIMEOUT_MAX)
            if not self._table.ask(client, operation, fields):
                client.deadline = time.monotonic() + client.seconds
                self._look_at(client.deadline)
        except ArgumentError as error:
            client.line.send(Answer.REFUSED, packed([str(error).encode()]))
        except (TypeError, OverflowError) as error:  # of another number of fields, or a wait of hundreds of digits
            raise BadFrame(str(error)) from None

    def _answer(self, client: _Client, result: list[bytes]) -> None:
        try:
            client.line.send(Answer.DONE, packed(result))
        except ArgumentError as error:  # the result is too large
            client.line.send(Answer.REFUSED, packed([str(error).encode()]))

    def _lose(self, client: _Client, how: How, why: str) -> None:
        self._table.waiting.pop(client, None)

    def _look_at(self, deadline: float) -> None:
        """Look at *deadline* which waits are over, unless they are looked at before then, when the next time is settled."""
        if deadline < min(self._looks, default=math.inf):
            self._looks.add(deadline)
            self._loop.call_later(max(0.0, deadline - time.monotonic()), partial(self._look, deadline))

    def _look(self, deadline: float) -> None:
        self._looks.remove(deadline)
        waiting, now = self._table.waiting, time.monotonic()
        for client, (operation, fields) in list(waiting.items()):
            if client.deadline <= now:
                del waiting[client]
                error = timed_out(operation, fields, self._table.missing(fields), client.seconds)
                client.line.send(Answer.TIMED_OUT, packed([str(error).encode(errors="replace")]))
        if waiting:
            self._look_at(min(client.deadline for client in waiting))
