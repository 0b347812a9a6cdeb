"""Sockets that listen, and who comes to them."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable

from shim.core.sockets.loop import Loop

_BACKLOG = 4096
_AFTER_TOO_MANY = 0.2  # seconds without a look at who comes, where the process has no descriptor for them
_TOO_MANY = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PEER_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: see unix(7)


def listening_at(family: int, address: tuple[object, ...] | str, for_ipv4_too: bool = False) -> socket.socket:
    """Return a socket that listens at *address*; one of IPv6 *for_ipv4_too*, if so. Raises OSError."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family != socket.AF_UNIX:
            # Connections of an earlier listener may still have the port; two listeners cannot share it in spite of this.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not for_ipv4_too)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def stranger_at(sock: socket.socket) -> str:
    """Return which process of another user is at the other end of a unix socket; nothing where it is one of this user's."""
    pid, uid = peer_of(sock)
    return "" if uid == os.geteuid() else f"process {pid} of another user (uid {uid})"


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process at the other end of a unix socket."""
    data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    pid, uid, _ = _PEER_CREDENTIALS.unpack(data)
    return pid, uid


class Listener:
    """Accepts connections on *sock* and hands them to *welcome*, with the other end's address, but for other users' over unix sockets.

    *note* gets why somebody was not let in. All on *loop*'s thread, but that ``open`` may be called before the thread has started.
    """

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        welcome: Callable[[socket.socket, str], object],
        note: Callable[[str], object] = str,
    ) -> None:
        self._loop, self._socket, self._welcome, self._note = loop, sock, welcome, note
        self._is_open = False
        sock.setblocking(False)

    def open(self) -> None:
        self._is_open = True
        self._loop.add(self._socket, self._accept)

    def close(self) -> None:
        self._is_open = False
        self._loop.remove(self._socket)

    def _reopen(self) -> None:
        if self._is_open:
            self._loop.add(self._socket, self._accept)

    def _accept(self, events: int) -> None:
        for _ in range(64):
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _TOO_MANY:
                    self._note(f"this process cannot open more files ({error.strerror})")
                    self._loop.pause(self._socket)  # those who wait there would wake the thread again at once
                    self._loop.call_later(_AFTER_TOO_MANY, self._reopen)
                return
            sock.setblocking(False)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._welcome(sock, str(address[0]))
            elif stranger := stranger_at(sock):
                self._note(f"{stranger} came")
                sock.close()
            else:
                self._welcome(sock, "127.0.0.1")
