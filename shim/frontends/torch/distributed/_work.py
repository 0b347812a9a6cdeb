"""Work: what an asynchronous call returns, with torch's methods."""

from __future__ import annotations

import sys
import threading
from datetime import timedelta
from typing import Any

from shim.core import work
from shim.core.groups import ProcessGroup
from shim.errors import ShimError, UnsupportedError

__all__ = ["Work", "finish", "sender"]

_NO_TIMEOUT = timedelta(0)


class Work:
    """A collective that runs in the background; *outputs* are the tensors it writes.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.Work
    """

    __slots__ = ("__weakref__", "_outputs", "_seconds", "_started")

    def __init__(self, started: work.Work, outputs: Any, seconds: float = -1.0) -> None:
        self._started = started
        self._outputs = outputs
        self._seconds = seconds

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait until it has ended, at most *timeout* (zero: the group's own), and return True.

        Raises: what ended it; CollectiveTimeoutError when *timeout* passes.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
        self._started.wait(seconds if seconds > 0 else self._seconds)
        return True

    def synchronize(self) -> None:
        """Wait until it has ended: host tensors have no stream to order it in."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait until it has ended: host tensors have no stream to order it in."""
        self.wait()

    def is_completed(self) -> bool:
        """Tell whether it has ended, well or badly."""
        return self._started.is_completed()

    def is_success(self) -> bool:
        """Tell whether it has ended well."""
        return self._started.is_completed() and self._started.exception() is None

    def exception(self) -> ShimError | None:
        """Return the error that ended it, or None."""
        return self._started.exception()

    def result(self) -> list[Any]:
        """Return the tensors it writes."""
        return list(self._outputs) if isinstance(self._outputs, (list, tuple)) else [self._outputs]

    def source_rank(self) -> int:
        """Return the group rank a completed receive came from."""
        return self._started.source_rank()

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Return a ``torch.futures.Future`` of ``result()``, completed by a thread that waits.

        Raises: UnsupportedError where torch is not imported: the future is torch's own.
        """
        if "torch" not in sys.modules:
            raise UnsupportedError("torch.distributed.Work.get_future: the torch frontend needs torch for its futures")
        future = sys.modules["torch"].futures.Future()
        threading.Thread(target=self._complete, args=(future,), daemon=True).start()
        return future

    def _complete(self, future: Any) -> None:
        try:
            self.wait()
        except ShimError as error:
            future.set_exception(error)
        else:
            future.set_result(self.result())


def finish(prepared: work.Work, async_op: bool, outputs: Any, seconds: float = -1.0) -> Work | None:
    """Carry *prepared* out here and return None, or start it and return its Work when *async_op*.

    *seconds* bounds the waiting, here or in ``Work.wait``; a process outside the group gets None.
    """
    if not async_op and seconds < 0:
        prepared.wait()
        return None
    started = prepared.start()
    if async_op:
        return None if started is None else Work(started, outputs, seconds)
    prepared.wait(seconds)  # only what runs in the background can be left waiting
    return None


def sender(prepared: work.Work, members: ProcessGroup) -> int:
    """Carry out the receive *prepared* and return the sender's rank in the world, -1 outside the group."""
    prepared.wait()
    source = prepared.source_rank()
    return -1 if source < 0 else members.world_rank(source)
