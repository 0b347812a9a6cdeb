"""Threads that must not be in a library while Python ends: coming back from there, they would end the process."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from shim._native import set_makes_no_calls, threads_in_functions

_PATIENCE = 1.0  # seconds for them to end with the groups; later nothing comes that could end them

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def begin_thread(name: str, target: Callable[..., Any], *arguments: Any) -> threading.Thread:
    """Begin and return a thread that ends when its group does."""
    thread = threading.Thread(target=_run, args=(target, arguments), name=name, daemon=True)
    thread.start()
    _threads.add(thread)
    return thread


def _run(target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    set_makes_no_calls(True)
    try:
        target(*arguments)
    finally:
        set_makes_no_calls(False)


def _join_all() -> None:
    """Wait for the threads that were begun here, and for the program's own that the native engine has move data."""
    deadline = time.monotonic() + _PATIENCE
    for thread in list(_threads):
        thread.join(max(0.0, deadline - time.monotonic()))
    while threads_in_functions() and time.monotonic() < deadline:
        time.sleep(0.001)


atexit.register(_join_all)
