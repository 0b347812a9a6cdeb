"""Tasks: what every call returns, synchronous or not, with paddle's methods."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from shim.core.work import ABSENT, ENDED, Work
from shim.errors import ShimError

_NO_TIMEOUT = timedelta(0)


class _Started:
    """What was started in one group, by its number: what may be running, and the errors that nobody was told."""

    def __init__(self) -> None:
        self.running: OrderedDict[int, Work] = OrderedDict()
        self.errors: dict[int, ShimError] = {}


_started: dict[int, _Started] = {}  # by the group's id
_numbers = itertools.count()
_lock = threading.RLock()  # over all of these; one that a signal's handler may take again


class Task:
    """A collective that has ended (``is_sync``) or runs in the background.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/Overview_en.html
    """

    __slots__ = ("__weakref__", "_group_id", "_is_sync", "_number", "_work")

    def __init__(self, work: Work, is_sync: bool, group_id: int, number: int = -1) -> None:
        self._work = work
        self._is_sync = is_sync
        self._group_id = group_id
        self._number = number  # of what was started in the background

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait until it has ended, at most *timeout* (zero: the group's own), and return True.

        Raises: what ended it; CollectiveTimeoutError when *timeout* passes.
        """
        if not self._is_sync:
            try:
                self._work.wait(timeout.total_seconds() if timeout > _NO_TIMEOUT else -1.0)
            finally:
                if self._work.is_completed():  # the caller knows how
                    _let_go_of(self._group_id, [self._number])
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


_ENDED_TASK = Task(ENDED, True, 0)  # there is nothing in it to tell one call from another


def ended() -> Task:
    """Return the Task of a call that has ended."""
    return _ENDED_TASK


def finish(prepared: Work, sync_op: bool, group: Any) -> Task | None:
    """Carry *prepared* out here when *sync_op*, else start it, and return its Task; None outside the *group*."""
    if prepared is ENDED:
        return _ENDED_TASK
    group_id = 0 if group is None else group.id
    if sync_op:
        prepared.wait()
        return None if prepared is ABSENT else Task(prepared, True, group_id)
    started = prepared.start()
    if started is None:
        return None
    number = next(_numbers)
    with _lock:
        there = _started.setdefault(group_id, _Started())
        _let_go_of_ended(there)
        there.running[number] = started
    return Task(started, False, group_id, number)


def settle(group_id: int) -> None:
    """Wait until everything that was started in the group has ended; raise the first error that nobody was told."""
    with _lock:
        there = _started.get(group_id, _Started())
        works = dict(there.running)
    errors: dict[int, ShimError] = {}
    for number, work in works.items():
        try:
            work.wait()
        except ShimError as error:
            errors[number] = error
    with _lock:
        errors.update(there.errors)
    _let_go_of(group_id, [*works, *errors])
    if errors:
        raise errors[min(errors)]


def forget_all() -> None:
    """Let go of what was started in a world that is gone."""
    with _lock:
        _started.clear()


def forget(group_ids: Iterable[int]) -> None:
    """Let go of what was started in groups that are destroyed."""
    with _lock:
        for group_id in group_ids:
            _started.pop(group_id, None)


def _let_go_of(group_id: int, numbers: Iterable[int]) -> None:
    with _lock:
        there = _started.get(group_id, _Started())
        for number in numbers:
            there.running.pop(number, None)
            there.errors.pop(number, None)


def _let_go_of_ended(there: _Started) -> None:
    """Let go of what has ended up to the first that has not, which goes to the end so that those behind it are seen next.

    Only the error is kept of what failed, as its tensors are of no use to anybody.
    """
    while there.running:
        try:
            number, work = there.running.popitem(last=False)
        except KeyError:  # a signal's handler has just let go of the last one
            return
        if not work.is_completed():
            there.running[number] = work
            return
        if (error := work.exception()) is not None:
            there.errors[number] = error
