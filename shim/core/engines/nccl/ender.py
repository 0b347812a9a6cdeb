"""A thread that ends communicators, for which NCCL may wait for ever: who has them ended waits for it no longer than he wants."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any, NamedTuple

from shim.core.engines.network.threads import begin_thread

_FOR_ITS_END = 1.0  # seconds, after which one that is stuck is left to itself


class _Order(NamedTuple):
    """To call ``end``, say so in ``is_done``, and put what it raises into ``raised``."""

    end: Callable[[], object]
    is_done: threading.Event
    raised: list[BaseException]


class Ender:
    """Does what it is given in order, each within what *context* gives.

    NCCL waits for graphs that hold calls of a communicator, when that is destroyed and when it is aborted (commDestroySync). The thread is
    begun beforehand: while the interpreter ends, when groups are closed, Python 3.12 begins none.
    """

    def __init__(self, context: Callable[[], AbstractContextManager[object]]) -> None:
        self._context = context
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread: Any = None

    def begin(self) -> None:
        """Begin the thread, if that was not done before."""
        self._thread = self._thread or begin_thread("shim cuda ending", self._run)

    def ends(self, end: Callable[[], object], until: float) -> bool:
        """Call *end*, wait for it *until* a time of the monotonic clock, and tell whether it has returned. Raises what it raises."""
        order = _Order(end, threading.Event(), [])
        self._orders.put(order)
        is_done = order.is_done.wait(max(0.0, until - time.monotonic()))
        for error in order.raised:
            raise error
        return is_done

    def close(self) -> None:
        """Have the thread end when it has done what it was given."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join(_FOR_ITS_END)
        self._context = nullcontext  # the group's, which would be in a circle with this

    def _run(self) -> None:
        context = self._context
        while (order := self._orders.get()) is not None:
            try:
                with context():
                    order.end()
            except BaseException as error:
                order.raised.append(error)
            order.is_done.set()
