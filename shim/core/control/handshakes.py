"""Rank 0's side of the handshakes with whoever comes to its meeting."""

from __future__ import annotations

import hmac
import os
import socket
from collections.abc import Callable

from shim.core.control.authentication import JOIN_SIZE, PROTOCOL, Hello, Join, Reply, SessionKeys, Status
from shim.core.control.peers import shown_ranks
from shim.core.sockets.listening import Listener
from shim.core.sockets.loop import Loop

_PATIENCE = 10.0  # seconds for a handshake


class Handshakes:
    """Greets who connects to *listener*, and hands those to *welcome* that have proved to be ranks of this job.

    *welcome* gets the rank, the socket, the other end's address, the frames' keys and the bytes that came already. *mistaken* gets the rank
    that the job cannot have as it was started, though it has the secret, and why. ``notes`` say who was turned away.
    All on the loop's thread. ``close`` ends the handshakes in progress.
    """

    def __init__(
        self,
        loop: Loop,
        listener: socket.socket,
        job: bytes,
        size: int,
        secret: bytes,
        welcome: Callable[[int, socket.socket, str, SessionKeys, bytes], None],
        mistaken: Callable[[int, str], None],
    ) -> None:
        self._loop = loop
        self._listener = Listener(loop, listener, self._greet, self.note)
        self.open = self._listener.open
        self._job, self._size, self._secret = job, size, secret
        self._welcome, self._mistaken = welcome, mistaken
        self._guests: dict[socket.socket, _Guest] = {}
        self.notes: dict[str, int] = {}  # how often each was made

    def close(self) -> None:
        self._listener.close()
        for guest in list(self._guests):
            self._turn_away(guest)

    def note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1

    def _greet(self, sock: socket.socket, address: str) -> None:
        hello = Hello.new(self._job, self._secret)
        try:
            sock.send(hello.packed())  # the buffer of a new socket has room for it
        except OSError:
            sock.close()
            return
        self._guests[sock] = _Guest(hello, address)
        self._loop.add(sock, lambda events: self._hear(sock))
        self._loop.call_later(_PATIENCE, lambda: self._turn_away(sock))

    def _hear(self, sock: socket.socket) -> None:
        guest = self._guests[sock]
        try:
            data = sock.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        guest.said += data
        if not data:
            if not guest.said and sock.family != socket.AF_UNIX:
                self.note(
                    f"a process at {guest.address} looked for another job (are SHIM_SECRET, the port and the launcher's name of the run the same there?)"
                )
            self._turn_away(sock)
        elif len(guest.said) >= JOIN_SIZE:
            self._judge(sock, guest)

    def _judge(self, sock: socket.socket, guest: _Guest) -> None:
        unpacked = Join.unpacked(bytes(guest.said[:JOIN_SIZE]))
        if unpacked is None:
            self.note(f"a process at {guest.address} that is no rank came")
            self._turn_away(sock)
            return
        join, proof = unpacked
        keys = SessionKeys(self._secret, guest.hello, join)
        is_proved = hmac.compare_digest(proof, keys.proof_of_member)
        status, text = self._verdict(join, is_proved)
        if status is not Status.WELCOME:
            self.note(
                f"rank {join.rank} at {guest.address} has another secret"
                if status is Status.WRONG_SECRET
                else f"{guest.address}: {text.partition(chr(10))[0]}"
            )
        proof_of_hub = bytes(32) if status is Status.WRONG_SECRET else keys.proof_of_hub
        try:
            sock.send(Reply.packed_with(status, proof_of_hub, text))
        except OSError:
            status = Status.REFUSED
        if status is not Status.WELCOME:
            self._turn_away(sock)
            if text and is_proved and join.has_secret == bool(self._secret):
                self._mistaken(join.rank, text)
            return
        del self._guests[sock]
        self._loop.release(sock)
        self._welcome(join.rank, sock, guest.address, keys, bytes(guest.said[JOIN_SIZE:]))

    def _verdict(self, join: Join, is_proved: bool) -> tuple[Status, str]:
        here = f"rank 0 on host {socket.gethostname()}"
        if join.protocol != PROTOCOL:
            return Status.REFUSED, other_version(PROTOCOL, here, join.protocol, f"rank {join.rank}")
        if join.has_secret != bool(self._secret) or not is_proved:
            return Status.WRONG_SECRET, ""
        if join.size != self._size:
            return Status.REFUSED, (
                f"the ranks must agree on the world size, but it is {self._size} on {here}, and {join.size} on rank {join.rank}\n"
                "Start all ranks with the same world size."
            )
        if not 0 < join.rank < self._size:
            return Status.REFUSED, (
                f"rank {join.rank} came a second time: it is {here} (pid {os.getpid()})"
                if join.rank == 0
                else f"rank {join.rank} came, but {here} waits for {shown_ranks(range(1, self._size))}"
            )
        return Status.WELCOME, ""

    def _turn_away(self, sock: socket.socket) -> None:
        if self._guests.pop(sock, None) is not None:
            self._loop.remove(sock)


def other_version(one: int, ones: str, other: int, others: str) -> str:
    """Return the text of an error about two versions of shim."""
    return (
        f"the ranks must have versions of shim that speak one protocol, but {ones} speaks version {one}, and {others} version {other}\n"
        "Install the same version of shim on all hosts."
    )


class _Guest:
    """A connection in its handshake."""

    def __init__(self, hello: Hello, address: str) -> None:
        self.hello = hello
        self.address = address
        self.said = bytearray()
