"""The handle that MindSpore's asynchronous functions return."""

from __future__ import annotations

import sys

from shim.core.work import Work


class CommHandle:
    """A collective that goes on in the background; a handle without one has nothing to wait for."""

    def __init__(self, handle: CommHandle | Work | None = None, exec_sync: bool = False) -> None:
        self._begun = handle
        self.handle = handle if isinstance(handle, CommHandle) else None
        self.exec_sync = exec_sync

    def wait(self) -> None:
        """Return when the outputs are written, and MindSpore's queue is empty if *exec_sync*; or raise what went wrong."""
        if self._begun is not None:
            self._begun.wait()
        if self.exec_sync and "mindspore" in sys.modules:
            sys.modules["mindspore"].runtime.synchronize()


def handle_of(work: Work, async_op: bool) -> CommHandle | None:
    """Begin *work* and return its handle if *async_op*; otherwise carry it out and return None."""
    if not async_op:
        work.wait()
        return None
    begun = work.start()
    return None if begun is None else CommHandle(begun)
