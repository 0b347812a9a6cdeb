"""Stores that a process serves, and their connections to it."""

from __future__ import annotations

import copy
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from shim.core.job.stores.base import Store
from shim.core.job.stores.rehearsed import RehearsedTable
from shim.core.job.stores.server import Answer, Server
from shim.core.job.stores.table import VERSION, WAITING, Operation, packed
from shim.core.sockets.frames import BadFrame, Fields, Sealing, receive, receive_frame
from shim.errors import ArgumentError, StoreError, StoreLostError, StoreTimeoutError

_GRACE = 10.0  # seconds beyond an operation's own limit, after which a server that does not answer counts as gone
_FIRST_PAUSE = 0.01  # seconds between two tries to connect
_LONGEST_PAUSE = 0.2
_GREETING = b"".join(Sealing(None).seal(Operation.GREET, [VERSION]))


_Served = TypeVar("_Served", bound="ServedStore")


class ServedStore(Store):
    """A store that one process serves to others, and to itself. Its ``server``, where it has one, ends when no other store has it."""

    server: Server | None
    _connections: Connections | RehearsedTable

    def _connect(self) -> Connections | RehearsedTable:
        raise NotImplementedError

    def request(self, operation: Operation, fields: Sequence[bytes], timeout: float | None = None) -> list[bytes]:
        seconds = self.timeout if timeout is None else timeout
        return self._connections.request(operation, fields, seconds, self.timeout)

    def clone(self: _Served) -> _Served:
        other = copy.copy(self)
        other._connections = other._connect()
        return other

    def close(self) -> None:
        self._connections.close()
        self.server = None


class Connections:
    """The connections of one store: as many as threads use it at once, so that one that waits delays no other.

    A connection whose exchange did not end well is closed: what arrives on it later would answer another question.
    A forked child makes its own.
    """

    def __init__(self, where: str, connect: Callable[[float], socket.socket]) -> None:
        self._where = where  # as messages name it
        self._open = connect  # within seconds
        self._idle: list[socket.socket] = []
        self._process = os.getpid()
        self._is_closed = False
        self._close = weakref.finalize(self, _close_all, self._idle)

    def first(self, seconds: float, before: Callable[[], object] = bool) -> None:
        """Connect and join, trying for *seconds*: the server may not have started yet, or one before it may just end.

        *before* is called before each try.
        """
        deadline = time.monotonic() + seconds
        pause = _FIRST_PAUSE
        while True:
            before()
            try:
                self._idle.append(self._connect(max(0.1, deadline - time.monotonic())))
                self.request(Operation.JOIN, [], 0.0, seconds)
                return
            except ConnectionError as error:
                if time.monotonic() + pause >= deadline:
                    raise StoreLostError(
                        f"no store was served at {self._where} within {seconds:g} s: {error}\n"
                        "Start the process that serves it, and give all of them the same place."
                    ) from None
            except (OSError, UnicodeError) as error:
                raise StoreLostError(f"the store at {self._where} cannot be reached: {error}") from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def request(self, operation: Operation, fields: Sequence[bytes], seconds: float, own: float) -> list[bytes]:
        """Have *operation* carried out, waiting up to *seconds* where it has to; other operations take *own* at most."""
        wait = max(0, round(min(seconds, threading.TIMEOUT_MAX / 1e6) * 1e6)) if operation in WAITING else 0
        body = packed([b"%d" % wait, *fields])
        kind, result = self._exchange(operation, body, max(own, seconds, 0.0) + _GRACE)
        if kind == Answer.DONE:
            return result
        text = result[0].decode(errors="replace")
        raise StoreTimeoutError(text) if kind == Answer.TIMED_OUT else ArgumentError(text)

    def _exchange(self, operation: Operation, body: bytes, seconds: float) -> tuple[int, list[bytes]]:
        """Ask for *operation* and return the kind and values of the answer, which has to come within *seconds*."""
        if self._is_closed:
            raise StoreError(f"the store at {self._where} is closed")
        if self._process != os.getpid():
            self._start_anew()
        connection: socket.socket | None = None
        try:
            connection = self._take_idle() or self._connect(seconds)
            connection.settimeout(min(seconds, threading.TIMEOUT_MAX))
            connection.sendall(b"".join(Sealing(None).seal(operation, [body])))
            kind, answer = receive_frame(connection)
            values = Fields(answer).values()
        except TimeoutError:
            _close(connection)
            raise StoreLostError(f"the store at {self._where} has not answered for {seconds:g} s") from None
        except (OSError, BadFrame) as error:
            _close(connection)
            raise StoreLostError(f"the store at {self._where} is gone: {error}") from None
        except BaseException:  # Ctrl-C too: nobody else would close what is half done
            _close(connection)
            raise
        self._keep(connection)
        return kind, values

    def _take_idle(self) -> socket.socket | None:
        try:
            return self._idle.pop()
        except IndexError:  # asked first, another thread could take the last one in between
            return None

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
        connection = self._open(min(seconds, threading.TIMEOUT_MAX))
        try:
            connection.sendall(_GREETING)
            if receive(connection, len(_GREETING)) != _GREETING:
                raise OSError("the server there is not a store of this project, or is of another version")
        except BaseException:  # Ctrl-C too: nobody else would close what is half done
            connection.close()
            raise
        return connection


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()


def _close_all(connections: list[socket.socket]) -> None:
    with suppress(IndexError):  # asked first, another thread could take the last one in between
        while True:
            connections.pop().close()
