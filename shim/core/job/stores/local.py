"""Stores without a server of the user's: for the ranks of one host, and for the threads of one process."""

from __future__ import annotations

import errno
import hashlib
import socket
import threading
import time
from collections.abc import Sequence
from functools import partial

from shim.core.job.stores.base import DEFAULT_TIMEOUT, Store, timed_out
from shim.core.job.stores.connections import Connections, ServedStore
from shim.core.job.stores.rehearsed import RehearsedTable, is_rehearsed
from shim.core.job.stores.server import Server
from shim.core.job.stores.table import MUTATING, Operation, Table
from shim.core.sockets.listening import listening_at, stranger_at


class LocalStore(ServedStore):
    """The store called *name* on this host, for processes of the same user.

    Whoever makes it first serves it, until that process closes it, no longer uses it, or ends; for the others the store
    is gone then, and StoreLostError says so. No port is taken, and nothing lies in a file system: the name is that of an
    abstract Unix socket.
    """

    def __init__(self, name: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout)
        self.name = name
        self._address = "\0shim-store-" + hashlib.sha256(name.encode()).hexdigest()
        self.server: Server | None = None
        self._connections = self._connect()
        try:
            self._connections.first(timeout, self._serve)
        except BaseException:  # Ctrl-C too: nobody else would close what is half done
            self.close()
            raise

    def _serve(self) -> None:
        """Serve it, unless another process does, which may end before this one has connected."""
        self.server = self.server or _serve(self._address)

    def _connect(self) -> Connections | RehearsedTable:
        if is_rehearsed():
            return RehearsedTable(self.name)
        return Connections(f"the name {self.name!r}", partial(_connection_to, self._address))


def _serve(address: str) -> Server | None:
    """Return a server at *address*, None where another process serves there already."""
    try:
        return Server([listening_at(socket.AF_UNIX, address)])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return None
        raise


def _connection_to(address: str, seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(seconds)
        connection.connect(address)
        if stranger_at(connection):
            raise PermissionError("the store is served by another user")
    except BaseException:  # Ctrl-C too: nobody else would close what is half done
        connection.close()
        raise
    return connection


class HashStore(Store):
    """A store for the threads of one process. Clones share its content; a forked child has a copy of its own."""

    def __init__(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout)
        self._table = Table()
        self._changed = threading.Condition()

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        with self._changed:
            while (result := self._table.carry_out(operation, fields)) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise timed_out(operation, fields, self._table.missing(fields), seconds)
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            if operation in MUTATING:
                self._changed.notify_all()
            return result

    def clone(self) -> HashStore:
        other = HashStore(self.timeout)
        other._table, other._changed = self._table, self._changed
        return other
