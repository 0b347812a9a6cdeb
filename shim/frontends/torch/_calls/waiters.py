"""Threads that wait for works and then complete their futures, whose callbacks they run.

A callback may start another collective and wait for that one's future, as PowerSGD's do. So futures are not completed on the
progress thread, which carries the other collective out, nor all on one thread: each is given to one that is idle, or new.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from shim._native import set_makes_no_calls

__all__ = ["run_in_waiter"]

_MOST_IDLE = 8  # threads
_idle: list[SimpleQueue[Callable[[], Any]]] = []  # the inboxes of the threads that have nothing to do


def run_in_waiter(task: Callable[[], Any]) -> None:
    """Run *task*, which raises nothing, on a thread of its own for as long as it takes."""
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name="shim waiter", daemon=True).start()
    inbox.put(task)


def _serve(inbox: SimpleQueue[Callable[[], Any]]) -> None:
    while True:
        set_makes_no_calls(True)  # of an idle one nothing is to be hoped for by those who wait for this rank
        task = inbox.get()
        set_makes_no_calls(False)
        task()
        del task  # nothing of the task, such as its tensors, is kept here until the next
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(inbox)


os.register_at_fork(after_in_child=_idle.clear)  # the child has none of the threads
