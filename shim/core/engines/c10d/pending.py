"""Transfers of a c10d backend that are under way, and the threads that wait for those which cannot be asked."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from shim.core.engines.network.link import LinkError
from shim.core.engines.network.threads import begin_thread


class CollectiveTransfer:
    """A collective, of which *work* can be asked; *kept* is what holds its memory, until it has ended or failed.

    It is not called back: gloo's threads would take Python's lock for that, perhaps when Python has ended.
    """

    def __init__(self, work: Any, kept: Sequence[Any]) -> None:
        self._work = work
        self._kept = kept
        for one in [one for one in list(_under_way) if one._work.is_completed()]:
            _under_way.discard(one)
        _under_way.add(self)  # the memory is in use, even if nobody waits any more

    def wait(self, seconds: float) -> bool:
        if not self._work.is_completed():
            if seconds <= 0:
                return False
            with suppress(RuntimeError):  # it is late, or else it has failed and says so again
                self._work.wait(timedelta(seconds=seconds))
            if not self._work.is_completed():
                return False
        _under_way.discard(self)
        try:
            self._work.wait()
        except RuntimeError as error:
            raise LinkError(str(error).partition("\n")[0]) from None
        self._kept = ()
        return True


# Those of all groups. Any thread changes it, so it is copied before it is looked through.
_under_way: set[CollectiveTransfer] = set()


class WaitedTransfer:
    """Messages, whose *works* end only for who waits for them; *kept* is what holds their memory, until they have ended."""

    def __init__(self, works: Sequence[Any], kept: Sequence[Any]) -> None:
        self._works = works
        self._kept = kept
        self._has_ended = threading.Event()
        self._error: Exception | None = None

    def wait(self, seconds: float) -> bool:
        if not (self._has_ended.is_set() or (seconds > 0 and self._has_ended.wait(seconds))):
            return False
        if self._error is not None:
            raise LinkError(str(self._error).partition("\n")[0]) from None
        return True

    def carry_out(self) -> None:
        """Wait for the works; called by a Waiter."""
        works, self._works = list(self._works), ()
        try:
            while works:
                works.pop(0).wait()
        except Exception as error:
            self._error = error
        self._kept = ()
        self._has_ended.set()


class Waiter:
    """A thread that waits for transfers, one after the other; it begins with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._transfers: queue.SimpleQueue[WaitedTransfer | None] = queue.SimpleQueue()
        self._has_begun = False

    def see_end(self, transfer: WaitedTransfer) -> WaitedTransfer:
        if not self._has_begun:
            self._has_begun = True
            begin_thread(self._name, self._run)
        self._transfers.put(transfer)
        return transfer

    def close(self) -> None:
        """End the thread when it has seen all transfers end."""
        self._transfers.put(None)

    def _run(self) -> None:
        while (transfer := self._transfers.get()) is not None:
            transfer.carry_out()
