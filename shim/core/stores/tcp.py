"""A store that one process serves to all others over TCP."""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Sequence

from shim.core.stores.base import DEFAULT_TIMEOUT, Store
from shim.core.stores.messages import GREETING, LENGTH, MAX_MESSAGE, message_of, parts_of
from shim.core.stores.table import WAITING, Operation
from shim.core.stores.tcp_server import DONE, TIMED_OUT, Server, listen
from shim.errors import ArgumentError, StoreError, StoreLostError, StoreTimeoutError

__all__ = ["TCPStore"]

_GRACE = 10.0  # seconds beyond an operation's own limit, after which a server that does not answer counts as gone
_FIRST_PAUSE = 0.01  # seconds between two tries to connect
_LONGEST_PAUSE = 0.2


class TCPStore(Store):
    """The store that the process with *is_server* serves on *port* of *host*, to itself and the others.

    The others wait up to *timeout* for it to be there. With *wait_for_ranks* the server waits until *world_size* stores
    (None: does not wait) have come, its own included. Port 0 takes a free one, which ``port`` then tells.
    *listen_fd* is the file descriptor of a socket that listens already, which the server takes over.
    With *shared*, servers of one process on one port are one. The server ends with its last store, clones included.
    Raises StoreLostError where it cannot listen, is not there in time, or is gone later.
    """

    def __init__(
        self,
        host: str,
        port: int,
        world_size: int | None = None,
        is_server: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        wait_for_ranks: bool = True,
        listen_fd: int | None = None,
        shared: bool = False,
    ) -> None:
        super().__init__(timeout)
        if not 0 <= port < 65536:
            raise ArgumentError(f"port must be in 0..65535, got {port}")
        self.host = host
        self.server = _server(host, port, listen_fd, shared) if is_server else None
        self.port = port if self.server is None else self.server.port
        self._connections = _Connections(host, self.port, self.server)
        try:
            self._connections.first(timeout)
            self.request(Operation.JOIN, [])
            if self.server is not None and wait_for_ranks and world_size is not None and world_size > 0:
                self.request(Operation.AWAIT_JOINED, [b"%d" % world_size])
        except BaseException:
            self.close()
            raise

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        seconds = self.timeout if timeout is None else timeout
        wait = max(0, round(min(seconds, threading.TIMEOUT_MAX / 1e6) * 1e6)) if operation in WAITING else 0
        message = message_of(operation, [b"%d" % wait, *fields])
        code, result = self._connections.exchange(message, max(self.timeout, seconds, 0.0) + _GRACE)
        if code == DONE:
            return result
        text = result[0].decode(errors="replace")
        raise StoreTimeoutError(text) if code == TIMED_OUT else ArgumentError(text)

    def clone(self) -> TCPStore:
        other = object.__new__(TCPStore)
        Store.__init__(other, self.timeout)
        other.host, other.port, other.server = self.host, self.port, self.server
        other._connections = _Connections(self.host, self.port, self.server)
        return other

    def close(self) -> None:
        self._connections.close()
        self.server = None  # it ends when no other store has it


class _Connections:
    """The connections of one store: as many as threads use it at once, so that one that waits delays no other.

    A connection whose exchange did not end well is closed: what arrives on it later would answer another question.
    A forked child makes its own.
    """

    def __init__(self, host: str, port: int, server: Server | None) -> None:
        self._host = host if server is None else server.address
        self._where = f"{host}:{port}"
        self._port = port
        self._idle: list[socket.socket] = []
        self._process = os.getpid()
        self._is_closed = False
        self._close = weakref.finalize(self, _close_all, self._idle)

    def first(self, seconds: float) -> None:
        """Connect, trying for *seconds*: the server may not have started yet."""
        deadline = time.monotonic() + seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                self._idle.append(self._connect(max(0.1, deadline - time.monotonic())))
                return
            except ConnectionRefusedError as error:
                if time.monotonic() + pause >= deadline:
                    raise StoreLostError(
                        f"no store was served at {self._where} within {seconds:g} s: {error}\n"
                        "Start the process with is_server, and give all of them the same host and port."
                    ) from None
            except (OSError, UnicodeError) as error:
                raise StoreLostError(f"the store at {self._where} cannot be reached: {error}") from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def exchange(self, message: bytes, seconds: float) -> tuple[int, list[bytes]]:
        """Send *message* and return the code and fields of the answer, which has to come within *seconds*."""
        if self._is_closed:
            raise StoreError(f"the store at {self._where} is closed")
        if self._process != os.getpid():
            self._start_anew()
        connection: socket.socket | None = None
        try:
            connection = self._idle.pop() if self._idle else self._connect(seconds)
            connection.settimeout(min(seconds, threading.TIMEOUT_MAX))
            connection.sendall(message)
            size = LENGTH.unpack(_receive(connection, LENGTH.size))[0]
            if not 0 < size <= MAX_MESSAGE:
                raise ConnectionError(f"it answered with {size} bytes")
            answer = parts_of(_receive(connection, size))
        except TimeoutError:
            _close(connection)
            raise StoreLostError(f"the store at {self._where} has not answered for {seconds:g} s") from None
        except OSError as error:
            _close(connection)
            raise StoreLostError(f"the store at {self._where} is gone: {error}") from None
        except BaseException:
            _close(connection)
            raise
        self._keep(connection)
        return answer

    def _keep(self, connection: socket.socket) -> None:
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        self._is_closed = True
        _close_all(self._idle)

    def _start_anew(self) -> None:
        """Close this process's copies of the parent's connections, which the parent goes on using."""
        _close_all(self._idle)
        self._process = os.getpid()

    def _connect(self, seconds: float) -> socket.socket:
        connection = socket.create_connection((self._host, self._port), min(seconds, threading.TIMEOUT_MAX))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.sendall(GREETING)
            if _receive(connection, len(GREETING)) != GREETING:
                raise OSError("what listens there is not a store of this project, or of another version")
        except BaseException:
            connection.close()
            raise
        return connection


def _receive(connection: socket.socket, size: int) -> bytes:
    """Return the next *size* bytes."""
    received = bytearray(size)
    view = memoryview(received)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise ConnectionError("it has closed the connection")
        view = view[count:]
    return bytes(received)


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()


def _close_all(connections: list[socket.socket]) -> None:
    while connections:
        connections.pop().close()


_shared_servers: weakref.WeakValueDictionary[int, Server] = weakref.WeakValueDictionary()


def _server(host: str, port: int, listen_fd: int | None, shared: bool) -> Server:
    if shared and port in _shared_servers:
        return _shared_servers[port]
    if listen_fd is None:
        server = Server(listen(host, port))
    else:
        server = Server([_taken_over(listen_fd, port)])
    if shared:
        _shared_servers[server.port] = server
    return server


def _taken_over(listen_fd: int, port: int) -> socket.socket:
    try:
        listener = socket.socket(fileno=listen_fd)
    except OSError as error:
        raise ArgumentError(f"listen_fd must be a socket that listens, got {listen_fd}: {error}") from None
    bound = listener.getsockname()[1] if listener.family in (socket.AF_INET, socket.AF_INET6) else None
    if bound is None or port not in (0, bound):
        listener.detach()
        raise ArgumentError(f"listen_fd must be a TCP socket on port {port}, got one on {bound}")
    listener.listen(1024)
    return listener
