"""What a call returns: a collective that is prepared, and then waited for in place or started in the background."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from shim.core.callers import Caller, Members
from shim.errors import CollectiveTimeoutError, ShimError

_BETWEEN_LOOKS = 0.0005  # seconds


class EngineWork(Protocol):
    """A prepared operation of an engine. Times are seconds; a negative timeout means the group's own."""

    def start(self) -> None: ...
    def wait(self, timeout: float = -1.0) -> None: ...
    def hold_memory(self) -> None:
        """Have the tensors' memory stay until it has ended, whatever becomes of the tensors; ``start`` does so too."""

    def read_before_others_write(self, others: list[Any]) -> None:
        """Have it and *others*, works of the same engine that are not started, read now what another of them is going to write."""

    def is_completed(self) -> bool: ...
    def exception(self) -> ShimError | None: ...
    def source_rank(self) -> int: ...


class WorkLayer:
    """An ``EngineWork`` that stands on another one, *under*, and does what that does but for what it overrides."""

    __slots__ = ("under",)

    def __init__(self, under: EngineWork) -> None:
        self.under = under

    def mover(self) -> EngineWork:
        """Return the work that knows what its engine is going to read and write: this one, or, where it only looks on, *under*."""
        return self

    def start(self) -> None:
        self.under.start()

    def wait(self, timeout: float = -1.0) -> None:
        self.under.wait(timeout)

    def hold_memory(self) -> None:
        self.under.hold_memory()

    def read_before_others_write(self, others: list[Any]) -> None:
        """Do nothing: what another work writes is not what this one reads."""

    def is_completed(self) -> bool:
        return self.under.is_completed()

    def exception(self) -> ShimError | None:
        return self.under.exception()

    def source_rank(self) -> int:
        return self.under.source_rank()


class Work:
    """One call of a collective by this rank.

    ``calls`` prepares it: arguments are checked, nothing has been sent. Then exactly one of two things happens:
    ``wait()`` carries it out on the calling thread, which is the fastest way; or ``start()`` puts it into the group's
    queue, whose operations run in the order they were started on the group's progress thread. From then on the tensors'
    memory stays until it has ended, although they may be given other memory.
    """

    __slots__ = ("_caller", "_group", "_operation")

    def __init__(self, caller: Caller, group: Members, operation: EngineWork) -> None:
        self._caller = caller
        self._group = group
        self._operation = operation

    def start(self) -> Work | None:
        """Begin in the background and return self (None where there is nothing to do, see ``ABSENT``)."""
        try:
            self._operation.start()
        except ShimError as error:
            raise self._caller.explain(error, self._group) from None
        return self

    def hold_memory(self) -> None:
        """Have the tensors' memory stay, as after ``start``, although the program goes on before that."""
        self._operation.hold_memory()

    def wait(self, timeout: float = -1.0) -> None:
        """Return when the outputs are written, or raise what went wrong. On a device, what comes next on the current stream sees them.

        ``timeout`` is in seconds; when it passes, CollectiveTimeoutError is raised while a started operation goes on.
        A negative one waits for the end, which the group's own timeout bounds.
        """
        try:
            self._operation.wait(timeout)
        except ShimError as error:
            raise self._caller.explain(error, self._group) from None

    def wait_on_device(self, timeout: float) -> None:
        """Wait as ``wait`` does, and until the device, too, has carried it out. Raises CollectiveTimeoutError after *timeout* seconds."""
        until = time.monotonic() + timeout
        self.wait(timeout)
        while not self.is_completed():
            if time.monotonic() > until:
                late = CollectiveTimeoutError(f"the operation has not ended on the device within {timeout:g} s")
                late.ranks = ()
                raise self._caller.explain(late, self._group)
            time.sleep(_BETWEEN_LOOKS)
        self.wait(timeout)  # which raises what has ended it before its outputs were there

    def is_completed(self) -> bool:
        """Tell whether it has ended, well or badly."""
        return self._operation.is_completed()

    def exception(self) -> ShimError | None:
        """Return the error that ended it, or None."""
        error = self._operation.exception()
        return None if error is None else self._caller.explain(error, self._group)

    def source_rank(self) -> int:
        """Return the group rank a completed receive came from."""
        return self._operation.source_rank()

    def group_timeout(self) -> float:
        """Return the timeout of its group in seconds, 0.0 where nothing is left to do."""
        return self._group.timeout


class _Ended(Work):
    """The work of a call that has been carried out: nothing is left to do."""

    def __init__(self) -> None:
        pass

    def start(self) -> Work | None:
        return self

    def wait(self, timeout: float = -1.0) -> None:
        return None

    def is_completed(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def source_rank(self) -> int:
        return -1

    def group_timeout(self) -> float:
        return 0.0


class _Absent(_Ended):
    """The work of a process that is not in the group: there is none."""

    def start(self) -> None:
        return None


ENDED = _Ended()
ABSENT = _Absent()


class Batch(Work):
    """Several calls that begin together and have ended when all of them have; none of them waits for one before it.

    Their tensors may share memory: each reads what was there before any of them wrote, and they write in their order.
    Waiting for the batch starts what is not started. The first error, in the order of the works, is what ended it.
    """

    __slots__ = ("_works",)

    def __init__(self, works: Sequence[Work]) -> None:
        read_before_others_write(works)
        self._works = works

    def start(self) -> Work | None:
        for work in self._works:
            work.start()
        return self

    def wait(self, timeout: float = -1.0) -> None:
        """Return when all have ended; *timeout* bounds the waiting for all of them together. Raise the first error."""
        self.start()
        deadline = time.monotonic() + timeout
        failure: ShimError | None = None
        for work in self._works:
            try:
                work.wait(timeout if timeout < 0 else max(0.0, deadline - time.monotonic()))
            except ShimError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def wait_on_device(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        self.wait(timeout)
        for work in self._works:
            work.wait_on_device(max(0.0, until - time.monotonic()))

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def exception(self) -> ShimError | None:
        return next((error for error in (work.exception() for work in self._works) if error is not None), None)

    def source_rank(self) -> int:
        return -1

    def group_timeout(self) -> float:
        return max((work.group_timeout() for work in self._works), default=0.0)


def mover_of(operation: EngineWork) -> EngineWork:
    """Return the work under *operation* that knows what its engine is going to read and write."""
    return operation.mover() if isinstance(operation, WorkLayer) else operation


def read_before_others_write(works: Sequence[Work]) -> None:
    """Have each of *works*, which are not started and begin together, read now what another of them is going to write.

    Raises OutOfMemoryError where there is no memory for it; then none may be started.
    """
    by_engine: dict[type, list[Work]] = {}  # those of different engines have their tensors in different places
    for work in works:
        if not isinstance(work, _Ended):
            by_engine.setdefault(type(mover_of(work._operation)), []).append(work)
    for first, *others in by_engine.values():
        if not others:
            continue
        try:
            first._operation.read_before_others_write([other._operation for other in others])
        except ShimError as error:
            raise first._caller.explain(error, first._group) from None


def finish(work: Work, in_background: bool) -> Work | None:
    """Start *work* and return it when *in_background*; otherwise carry it out here and return None."""
    if in_background:
        return work.start()
    work.wait()
    return None
