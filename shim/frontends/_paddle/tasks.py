"""Tasks: what every call returns, synchronous or not, with paddle's methods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from shim.core.work import ABSENT, Work
from shim.errors import ShimError

__all__ = ["Task", "finish", "forget", "forget_all", "settle"]

_NO_TIMEOUT = timedelta(0)
_running: dict[int, list[Work]] = {}  # what was started in each group, by its id, and not seen to have ended well


class Task:
    """A collective that has ended (``is_sync``) or runs in the background.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/Overview_en.html
    """

    __slots__ = ("__weakref__", "_group_id", "_is_sync", "_work")

    def __init__(self, work: Work, is_sync: bool, group_id: int) -> None:
        self._work = work
        self._is_sync = is_sync
        self._group_id = group_id

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait until it has ended, at most *timeout* (zero: the group's own), and return True.

        Raises: what ended it; CollectiveTimeoutError when *timeout* passes.
        """
        if not self._is_sync:
            try:
                self._work.wait(timeout.total_seconds() if timeout > _NO_TIMEOUT else -1.0)
            finally:
                _prune(self._group_id, self._work)
        return True

    def is_completed(self) -> bool:
        """Tell whether it has ended, well or badly."""
        return self._is_sync or self._work.is_completed()

    def is_sync(self) -> bool:
        """Tell whether it had ended when the call returned."""
        return self._is_sync

    def synchronize(self) -> None:
        """Wait until it has ended: host tensors have no stream to order it in."""
        self.wait()


def finish(prepared: Work, sync_op: bool, group: Any) -> Task | None:
    """Carry *prepared* out here when *sync_op*, else start it, and return its Task; None outside the *group*."""
    group_id = 0 if group is None else group.id
    if sync_op:
        prepared.wait()
        return None if prepared is ABSENT else Task(prepared, True, group_id)
    started = prepared.start()
    if started is None:
        return None
    _prune(group_id)
    _running.setdefault(group_id, []).append(started)
    return Task(started, False, group_id)


def settle(group_id: int) -> None:
    """Wait until everything that was started in the group has ended; raise the first error that nobody was told."""
    failure: ShimError | None = None
    for work in _running.pop(group_id, []):
        try:
            work.wait()
        except ShimError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def forget_all() -> None:
    """Let go of what was started in a world that is gone."""
    _running.clear()


def forget(group_ids: Iterable[int]) -> None:
    """Let go of what was started in groups that are destroyed."""
    for group_id in group_ids:
        _running.pop(group_id, None)


def _prune(group_id: int, told: Work | None = None) -> None:
    """Let go of what has ended well, and of *told* if it has ended, whose caller knows how."""
    _running[group_id] = [
        work
        for work in _running.get(group_id, [])
        if not work.is_completed() or (work is not told and work.exception() is not None)
    ]
