"""A store that one process serves to all others over TCP."""

from __future__ import annotations

import socket
import weakref
from functools import partial

from shim.core.job.stores.base import DEFAULT_TIMEOUT
from shim.core.job.stores.connections import Connections, ServedStore
from shim.core.job.stores.rehearsed import RehearsedTable, is_rehearsed
from shim.core.job.stores.server import Server, listen
from shim.core.job.stores.table import Operation
from shim.errors import ArgumentError


class TCPStore(ServedStore):
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
        self.server = _server(host, port, listen_fd, shared) if is_server and not is_rehearsed() else None
        self.port = port if self.server is None else self.server.port
        self._connections = self._connect()
        try:
            self._connections.first(timeout)
            if self.server is not None and wait_for_ranks and world_size is not None and world_size > 0:
                self.request(Operation.AWAIT_JOINED, [b"%d" % world_size])
        except BaseException:  # Ctrl-C too: nobody else would close what is half done
            self.close()
            raise

    def _connect(self) -> Connections | RehearsedTable:
        if is_rehearsed():
            return RehearsedTable(f"{self.host}:{self.port}")
        host = self.host if self.server is None else self.server.address
        return Connections(f"{self.host}:{self.port}", partial(_connection_to, host, self.port))


def _connection_to(host: str, port: int, seconds: float) -> socket.socket:
    connection = socket.create_connection((host, port), seconds)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


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
