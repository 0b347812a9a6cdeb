"""The thread that serves connections of a process: one selector, calls from other threads, and timers."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import socket
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

_LONGEST_PASS = 3600.0  # seconds: the kernel takes no wait of many days
_loops: weakref.WeakSet[Loop] = weakref.WeakSet()


class Loop:
    """Runs functions on one daemon thread: when a socket is ready, when another thread asks for it, and after a time.

    What a function raises goes to standard error; the thread goes on. ``stop`` ends the thread, and that closes what is registered.
    """

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wakes, selectors.EVENT_READ)
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._is_ending = False
        self._is_closed = False
        self._closing = threading.Lock()  # for the eventfd: a closed number may be another file's
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.sockets: dict[socket.socket, Callable[[int], object]] = {}
        _loops.add(self)

    def start(self) -> None:
        self._thread.start()

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Have the thread call *function* soon, in the order of these calls. Any thread may ask; after the end nothing is called."""
        self._calls.append((function, arguments))
        if threading.current_thread() is not self._thread:
            self._wake()

    def call_and_wait(self, function: Callable[[], object], seconds: float) -> None:
        """Have *function* called, for another thread, and wait so long at most until it has been, or never will be."""
        called = threading.Event()
        self.call(function)
        self.call(called.set)
        deadline = time.monotonic() + seconds
        while not called.wait(0.01) and self._thread.is_alive() and time.monotonic() < deadline:
            continue

    def call_later(self, seconds: float, function: Callable[[], object]) -> None:
        """Have the thread, which alone may ask for it, call *function* after *seconds*."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), function))

    def add(self, sock: socket.socket, ready: Callable[[int], object]) -> None:
        """Have the thread, which alone may ask for it, call *ready* with the selector's events while *sock* is readable."""
        self.sockets[sock] = ready
        self._selector.register(sock, selectors.EVENT_READ, ready)

    def watch(self, sock: socket.socket, writable: bool) -> None:
        """Have *sock* served, or served no more, when it is writable, too. On the thread only."""
        if sock in self.sockets:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writable else 0)
            self._selector.modify(sock, events, self.sockets[sock])

    def pause(self, sock: socket.socket) -> None:
        """Do not look at *sock* until ``add`` is called for it again. On the thread only."""
        self._selector.unregister(sock)

    def remove(self, sock: socket.socket) -> None:
        """Close *sock*. On the thread only."""
        if self.sockets.pop(sock, None) is not None:
            with contextlib.suppress(KeyError):  # it is paused
                self._selector.unregister(sock)
        sock.close()

    def release(self, sock: socket.socket) -> None:
        """Serve *sock* no more, but leave it open. On the thread only."""
        if self.sockets.pop(sock, None) is not None:
            self._selector.unregister(sock)

    def stop(self) -> None:
        """End the thread soon, and close what it serves."""
        self._is_ending = True
        self._wake()

    def join(self, seconds: float) -> None:
        """Wait so long at most until the thread has ended, unless it is the caller."""
        if not self.is_current:
            self._thread.join(seconds)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive() and not self._is_ending

    @property
    def is_current(self) -> bool:
        """Whether the caller is this thread."""
        return threading.current_thread() is self._thread

    def _wake(self) -> None:
        with self._closing:
            if not self._is_closed:
                os.eventfd_write(self._wakes, 1)

    def _run(self) -> None:
        from shim._native import set_makes_no_calls  # here: core can be imported without it

        set_makes_no_calls(True)
        try:
            while not self._is_ending:
                self._pass()
        finally:
            set_makes_no_calls(False)
            for sock in list(self.sockets):
                self.remove(sock)
            self._selector.close()
            with self._closing:
                self._is_closed = True
                os.close(self._wakes)

    def _pass(self) -> None:
        seconds = 0.0 if self._calls else None
        if self._timers and seconds is None:
            seconds = min(max(0.0, self._timers[0][0] - time.monotonic()), _LONGEST_PASS)
        for key, events in self._selector.select(seconds):
            if key.data is None:
                os.eventfd_read(self._wakes)
            elif key.fileobj in self.sockets:  # another socket's function may have closed it
                report(key.data, events)
        for _ in range(len(self._calls)):
            function, arguments = self._calls.popleft()
            report(function, *arguments)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            report(heapq.heappop(self._timers)[2])

    def abandon(self) -> None:
        """Close this process's copies of the sockets, as a forked child: the parent's connections go on. Its thread is the parent's alone."""
        self._is_ending = self._is_closed = True
        for sock in list(self.sockets):
            sock.close()
        self.sockets.clear()
        self._selector.close()  # unregistering would take the sockets out of the parent's selector
        os.close(self._wakes)


def report(function: Callable[..., object], *arguments: Any) -> None:
    """Call *function*, and show on standard error what it raises: on a thread that has to go on."""
    try:
        function(*arguments)
    except Exception:
        if sys.stderr is not None:
            sys.stderr.write(f"shim: on thread {threading.current_thread().name!r}:\n{traceback.format_exc()}")


def _abandon_all() -> None:
    for loop in list(_loops):
        if not loop._is_closed:
            loop.abandon()
        loop._closing = threading.Lock()
    _loops.clear()


os.register_at_fork(after_in_child=_abandon_all)
