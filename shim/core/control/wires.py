"""Connections between processes of different hosts over which groups exchange arrivals; each pair has one, made when a group first needs it."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from shim.core.control.authentication import HELLO_SIZE, Hello, SessionKeys, hash_of_key
from shim.core.control.handshakes import Handshakes
from shim.core.control.meeting import Patience
from shim.core.control.other_ranks import shaken_hands
from shim.core.sockets.frames import receive
from shim.core.sockets.listening import listening_at, stranger_at
from shim.errors import EngineError, StateError

if TYPE_CHECKING:
    from shim._native import Wire
    from shim.core.control.control import Control

_made: dict[Control, Wires] = {}  # until the control connections are closed
_making = threading.Lock()
_BETWEEN_LOOKS = 0.05  # seconds
_FOR_A_CONNECTION = 5.0  # seconds of one try


def wires_of(control: Control) -> Wires:
    """Return the connections of this process to others of the job that *control* is of."""
    with _making:
        found = _made.get(control)
        if found is None:
            found = _made[control] = Wires(control)
            control.before_close.append(found.close)
        return found


class Wires:
    """The connections of this process. Any thread may use it.

    Of two ranks the one with the larger number connects to the other one's address. Both prove that they know the job's secret; where it has
    none, all ranks are on this host, and use unix sockets, to which only processes of the same user are let in.
    """

    def __init__(self, control: Control) -> None:
        assert control.job is not None
        job = control.job
        self._control, self._job = control, job
        self._key = hash_of_key(f"{job.key} wires")
        self._changed = threading.Condition()
        self._made: dict[int, Wire] = {}  # by rank of the world
        self._connecting = threading.Lock()
        self._address = ""
        self._stop_listening: Callable[[], object] = bool
        self._is_closed = False

    def address(self) -> str:
        """Return where others of the job may connect to this process; from now on it is listened to."""
        with self._connecting:
            if not self._address:
                self._listen()
            return self._address

    def _listen(self) -> None:
        if self._job.secret:
            host = self._control.peers[self._control.rank].address or "127.0.0.1"
            listener = listening_at(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, 0))
            self._address = str(listener.getsockname()[1])
        else:
            self._address = f"\0shim-wire-{os.geteuid()}-{secrets.token_hex(16)}"
            listener = listening_at(socket.AF_UNIX, self._address)
        loop = self._control.loop
        handshakes = Handshakes(
            loop,
            listener,
            self._key,
            self._job.size,
            self._job.secret,
            self._welcome,
            lambda rank, why: None,
        )
        loop.call(handshakes.open)
        self._stop_listening = lambda: loop.call(handshakes.close)

    def _welcome(self, rank: int, sock: socket.socket, address: str, keys: SessionKeys, already: bytes) -> None:
        del address, keys, already  # who comes waits for the reply before it sends
        self._keep(rank, sock)

    def _keep(self, rank: int, sock: socket.socket) -> Wire:
        from shim._native import Wire  # control connections alone do without

        with self._changed:
            wire = self._made[rank] = Wire(sock.detach())
            self._changed.notify_all()
        return wire

    def to(self, rank: int, address: str, timeout: float) -> Wire:
        """Return the connection to the process of *rank*, which is told at *address*, if it is this one's part to make it.

        Raises EngineError where there is none within *timeout* seconds, or the rank is lost meanwhile.
        """
        deadline = time.monotonic() + timeout
        if rank < self._control.rank:
            with self._connecting:
                return self._made.get(rank) or self._connected(rank, address, deadline)
        with self._changed:
            while rank not in self._made:
                self._check(rank, deadline)
                self._changed.wait(_BETWEEN_LOOKS)
            return self._made[rank]

    def _connected(self, rank: int, address: str, deadline: float) -> Wire:
        while True:
            self._check(rank, deadline)
            try:
                sock = self._opened(rank, address)
            except OSError:
                time.sleep(_BETWEEN_LOOKS)
                continue
            try:
                hello = Hello.unpacked(receive(sock, HELLO_SIZE))
                if hello is None or hello.job != self._key:
                    raise EngineError(f"what listens at the address of rank {rank} is no process of this job")
                shaken_hands(
                    self._job, sock, hello, Patience(self._job, deadline - time.monotonic(), 0), f"rank {rank}"
                )
                return self._keep(rank, sock)
            except OSError:
                sock.close()
            except BaseException:
                sock.close()
                raise

    def _opened(self, rank: int, address: str) -> socket.socket:
        if address.startswith("\0"):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(_FOR_A_CONNECTION)
            sock.connect(address)
            if stranger := stranger_at(sock):
                sock.close()
                raise EngineError(f"{stranger} listens at the address of rank {rank}")
            return sock
        peers = self._control.peers
        mine = peers[self._control.rank].address
        return socket.create_connection(
            (peers[rank].address, int(address)), _FOR_A_CONNECTION, (mine, 0) if mine and self._job.interface else None
        )

    def _check(self, rank: int, deadline: float) -> None:
        if self._is_closed:
            raise StateError("the control connections have been closed meanwhile")
        if self._control.is_gone(rank):
            raise EngineError(f"rank {rank}{self._control.ending_of(rank)}")
        if time.monotonic() > deadline:
            raise EngineError(f"there is no connection to rank {rank} at {self._control.peers[rank].address}")

    def close(self) -> None:
        """Let go of all connections; groups that use them end theirs."""
        with self._changed:
            self._is_closed = True
            self._made.clear()
            self._changed.notify_all()
        with _making:
            _made.pop(self._control, None)
        self._stop_listening()
