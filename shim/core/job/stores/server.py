"""The server of a store: one thread of the process that serves, with one table."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import struct
import threading
import time
import weakref
from typing import NamedTuple

from shim.core.job.stores.base import timed_out
from shim.core.job.stores.messages import GREETING, LENGTH, MAX_MESSAGE, message_of, parts_of
from shim.core.job.stores.table import MUTATING, Operation, Table
from shim.errors import ArgumentError, StoreLostError

DONE, REFUSED, TIMED_OUT = 0, 1, 2  # the code of a reply; the latter two have a message as their only field
_CHUNK = 1 << 16
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_TRIES = 20  # to find a port that is free on both loopback addresses
_AFTER_TOO_MANY = 0.05  # seconds before the next try to accept, where the process has no file descriptor left


class Server:
    """Serves a table on the sockets *listeners*, until it is closed or no longer used, or its process ends.

    Whoever can connect can read and write everything; values are never unpickled. Over Unix sockets, the same user can.
    A forked child has no part in it.
    """

    def __init__(self, listeners: list[socket.socket]) -> None:
        self.address, self.port = _own_way_to(listeners[0])
        self._loop = _Loop(listeners)
        thread = threading.Thread(target=self._loop.run, name=f"shim store on port {self.port}", daemon=True)
        thread.start()
        self._stop = weakref.finalize(self, _stop, self._loop, thread, os.getpid())
        _loops.add(self._loop)

    def close(self) -> None:
        """Close every connection and the sockets, and end the thread."""
        self._stop()


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
        first = _listener("127.0.0.1", port)
        try:
            return [first, _listener("::1", first.getsockname()[1])]
        except OSError as error:
            if error.errno in _NO_IPV6:
                return [first]
            first.close()
            failure = error
    raise failure


def _on_all(port: int) -> list[socket.socket]:
    try:
        return [_listener("::", port)]
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        return [_listener("0.0.0.0", port)]


def _listener(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
        listener.bind((address, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def is_mine(connection: socket.socket) -> bool:
    """Tell whether the process at the other end of a Unix socket is of the same user."""
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.getuid())


class _Request(NamedTuple):
    """What a connection waits for."""

    operation: Operation
    fields: list[bytes]
    seconds: float
    deadline: float


class _Connection:
    """One client: at most one request is under way, so that what is buffered stays below two messages."""

    __slots__ = ("greeted", "incoming", "outgoing", "socket")

    def __init__(self, client: socket.socket) -> None:
        self.socket = client
        self.incoming = bytearray()
        self.outgoing = bytearray(GREETING)
        self.greeted = False


class _Loop:
    """What the thread does. Only the thread touches it, but for ``stop`` and ``abandon``."""

    def __init__(self, listeners: list[socket.socket]) -> None:
        self._listeners = listeners
        self._table = Table()
        self._connections: dict[socket.socket, _Connection] = {}
        self._waiting: dict[_Connection, _Request] = {}  # the longest waiting first
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._stopping = False
        for listener in listeners:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def stop(self) -> None:
        self._stopping = True
        with contextlib.suppress(OSError):  # the thread has ended meanwhile, and closed it
            self._wake.send(b"x")

    def abandon(self) -> None:
        """Close everything; in a forked child, which has copies of all the descriptors, so that the parent's count alone."""
        for one in (*self._connections, *self._listeners, self._wake, self._woken):
            one.close()
        self._selector.close()

    def run(self) -> None:
        from shim._native import set_makes_no_calls  # here, so that who has only stores' clients does not need it

        set_makes_no_calls(True)
        try:
            while not self._stopping:
                for key, events in self._selector.select(self._time_left()):
                    self._attend(key.fileobj, events)  # type: ignore[arg-type]  # only sockets are registered
                self._end_waits_that_are_over()
        finally:
            set_makes_no_calls(False)
            self.abandon()

    def _time_left(self) -> float | None:
        deadlines = [request.deadline for request in self._waiting.values()]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _attend(self, ready: socket.socket, events: int) -> None:
        if ready in self._listeners:
            self._accept(ready)
        elif (connection := self._connections.get(ready)) is not None:
            try:
                if events & selectors.EVENT_WRITE:
                    self._write(connection)
                if events & selectors.EVENT_READ:
                    self._read(connection)
            except (OSError, ValueError, TypeError, IndexError):
                self._drop(connection)  # it has gone, or sent what no store sends

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            time.sleep(_AFTER_TOO_MANY)
            return
        client.setblocking(False)
        if client.family == socket.AF_UNIX:
            if not is_mine(client):
                client.close()
                return
        else:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._connections[client] = _Connection(client)
        self._selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def _drop(self, connection: _Connection) -> None:
        del self._connections[connection.socket]
        self._waiting.pop(connection, None)
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _read(self, connection: _Connection) -> None:
        received = connection.socket.recv(_CHUNK)
        if not received:
            raise ConnectionError
        connection.incoming += received
        if not connection.greeted:
            if not connection.incoming.startswith(GREETING[: len(connection.incoming)]):
                raise ConnectionError  # something else than a store of ours
            if len(connection.incoming) < len(GREETING):
                return
            connection.greeted = True
            del connection.incoming[: len(GREETING)]
        self._take_request(connection)

    def _take_request(self, connection: _Connection) -> None:
        """Carry out the next request if it has come whole and the one before it has been answered."""
        buffer = connection.incoming
        if len(buffer) < LENGTH.size:
            return
        size = LENGTH.unpack_from(buffer)[0]
        if not 0 < size <= MAX_MESSAGE or connection in self._waiting or connection.outgoing:
            raise ConnectionError  # no store sends that, or sends before it has its answer
        end = LENGTH.size + size
        if len(buffer) < end:
            return
        code, fields = parts_of(bytes(buffer[LENGTH.size : end]))
        del buffer[:end]
        seconds = int(fields.pop(0)) / 1e6
        self._carry_out(connection, _Request(Operation(code), fields, seconds, time.monotonic() + seconds))

    def _carry_out(self, connection: _Connection, request: _Request) -> None:
        try:
            result = self._table.carry_out(request.operation, request.fields)
        except ArgumentError as error:
            self._answer(connection, REFUSED, [str(error).encode()])
            return
        if result is None:
            self._waiting[connection] = request
            return
        self._answer(connection, DONE, result)
        if request.operation in MUTATING:
            self._look_at_waits()

    def _look_at_waits(self) -> None:
        """Answer whoever waited for what has just come."""
        for connection, request in list(self._waiting.items()):
            result = self._table.carry_out(request.operation, request.fields)
            if result is not None:
                del self._waiting[connection]
                self._answer(connection, DONE, result)

    def _end_waits_that_are_over(self) -> None:
        now = time.monotonic()
        for connection, request in list(self._waiting.items()):
            if request.deadline <= now:
                del self._waiting[connection]
                missing = self._table.missing(request.fields)
                error = timed_out(request.operation, request.fields, missing, request.seconds)
                self._answer(connection, TIMED_OUT, [str(error).encode(errors="replace")])

    def _answer(self, connection: _Connection, code: int, fields: list[bytes]) -> None:
        try:
            connection.outgoing += message_of(code, fields)
        except ArgumentError as error:  # the result is too large
            connection.outgoing += message_of(REFUSED, [str(error).encode()])
        self._selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def _write(self, connection: _Connection) -> None:
        sent = connection.socket.send(connection.outgoing[:_CHUNK])
        del connection.outgoing[:sent]
        if not connection.outgoing:
            self._selector.modify(connection.socket, selectors.EVENT_READ)


def _stop(loop: _Loop, thread: threading.Thread, process: int) -> None:
    if process == os.getpid() and thread.is_alive():
        loop.stop()
        if thread is not threading.current_thread():
            thread.join()


_loops: weakref.WeakSet[_Loop] = weakref.WeakSet()


def _abandon_all() -> None:
    for loop in list(_loops):
        loop.abandon()
    _loops.clear()


os.register_at_fork(after_in_child=_abandon_all)
