"""Work: what an asynchronous call returns, with torch's methods; and the threads that complete the futures of works.

A callback may start another collective and wait for that one's future, as PowerSGD's do. So futures are not completed on the
progress thread, which carries the other collective out, nor all on one thread: each is given to one that is idle, or new.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

from shim._native import set_makes_no_calls
from shim.core import work
from shim.core.callers import Caller
from shim.errors import CollectiveTimeoutError, ShimError, UnsupportedError
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import ArgumentTypeError, TorchStateError, torch_function

__all__ = ["Work", "begin", "finish", "future_class"]

_NO_TIMEOUT = timedelta(0)
_GET_FUTURE = torch_function("Work.get_future")
_GET_FUTURE_RESULT = torch_function("Work.get_future_result")
_SUCCESS, _TIMEOUT, _ERROR = 0, 1, 2  # torch's WorkResult
_MOST_IDLE = 8  # threads
_NO_LIMIT = 365 * 86_400.0  # seconds: a year
_idle: list[SimpleQueue[Callable[[], Any]]] = []  # the inboxes of the threads that have nothing to do


class Work:
    """A collective that runs in the background; *outputs* are the tensors it writes.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.Work
    """

    def __init__(self, started: work.Work, outputs: Any, seconds: float = -1.0) -> None:
        self._started = started
        self._outputs = outputs
        self._seconds = seconds

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait until it has ended, at most *timeout* (zero: the group's own), and return True.

        On devices, this orders the current stream behind it; with a *timeout* the device is waited for, too.
        Raises: what ended it; CollectiveTimeoutError when *timeout* passes; TypeError for what is no timedelta.
        """
        seconds = _seconds_of(timeout)
        if seconds > 0:
            self._started.wait_on_device(seconds)
        else:
            self._started.wait(self._seconds)
        return True

    @property
    def timeout(self) -> timedelta:
        """How long ``wait`` waits: what the call was given, else the group's own timeout; zero once the call has ended on return."""
        return timedelta(seconds=self._seconds if self._seconds > 0 else self._started.group_timeout())

    def synchronize(self) -> None:
        """Wait as ``wait`` does."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait as ``wait`` does."""
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
        """Return the group rank a completed receive came from.

        Raises: RuntimeError for another work.
        """
        source = self._started.source_rank()
        if source < 0:
            raise TorchStateError("torch.distributed.Work.source_rank: only a receive that has ended has a source")
        return source

    _source_rank = source_rank

    def boxed(self) -> Any:
        """Return what ``unbox`` makes a Work again: for engines in Python it needs no box."""
        return self

    @staticmethod
    def unbox(arg0: Any, /) -> Work:
        """Return the Work that *arg0*, made by ``boxed``, holds. Raises: RuntimeError for anything else."""
        if isinstance(arg0, Work):
            return arg0
        raise TorchStateError(f"torch.distributed.Work.unbox: the argument must be from Work.boxed, got {arg0!r}")

    def get_future(self) -> Any:
        """Return a ``torch.futures.Future`` of the tensors it writes, completed by a thread that waits.

        An error in it is a RuntimeError with the text of ours: torch's C++ code knows no other.
        Raises: UnsupportedError where torch is not imported: the future is torch's own.
        """
        made = future_class(_GET_FUTURE)
        devices = _devices_of(self.result())
        ended = made(devices=list(devices)) if devices else made()
        self._when_ended(ended.set_result, on_device=not devices)  # of other frameworks: a future orders none of these
        return ended.then(self._result_of)

    def _result_of(self, ended: Any) -> list[Any]:
        error = ended.value()
        if error is not None:
            raise error
        self._started.wait()  # on this thread's stream, behind which the future's users come
        return self.result()

    def get_future_result(self) -> Any:
        """Return a ``torch.futures.Future`` of torch's WorkResult: 0 after success, 1 a timeout, 2 another error.

        Raises: UnsupportedError where torch is not imported: the future is torch's own.
        """
        future = future_class(_GET_FUTURE_RESULT)()
        self._when_ended(lambda error: future.set_result(_result_for(error)), on_device=True)
        return future

    def _when_ended(self, tell: Callable[[Exception | None], object], on_device: bool) -> None:
        """Call *tell* with what ended it, None after success: here if it has ended by now, else on a thread that waits for it.

        That it has ended *on the device*, too, is waited for, or left to the streams.
        """
        if self._started.is_completed():
            self._wait_and_tell(tell, on_device)
        else:
            _run_in_waiter(functools.partial(self._wait_and_tell, tell, on_device))

    def _wait_and_tell(self, tell: Callable[[Exception | None], object], on_device: bool) -> None:
        try:
            self.wait()
            if on_device:
                self._started.wait_on_device(_NO_LIMIT)
        except Exception as error:  # whatever it is, who waits for the future is to hear of it
            tell(error)
        else:
            tell(None)


def _devices_of(outputs: list[Any]) -> set[Any]:
    """Return the devices of torch's tensors that are not in host memory: a future orders its users on the streams there."""
    found: set[Any] = set()
    for one in outputs:
        if isinstance(one, (list, tuple)):
            found |= _devices_of(list(one))
        elif isinstance(one, sys.modules["torch"].Tensor) and one.device.type not in ("cpu", "meta"):
            found.add(one.device)
    return found


def _result_for(error: Exception | None) -> int:
    if error is None:
        return _SUCCESS
    return _TIMEOUT if isinstance(error, CollectiveTimeoutError) else _ERROR


def future_class(caller: Caller) -> Any:
    """Return torch's Future for *caller*, which returns one."""
    if "torch" not in sys.modules:
        raise caller.explain(UnsupportedError("the torch frontend needs torch for its futures\nImport torch first."))
    return sys.modules["torch"].futures.Future


def _seconds_of(timeout: Any) -> float:
    if isinstance(timeout, timedelta):
        return timeout.total_seconds()
    if isinstance(timeout, float):  # torch takes seconds too
        return timeout
    raise ArgumentTypeError(f"torch.distributed.Work.wait: timeout must be a datetime.timedelta, got {timeout!r}")


def begin(prepared: work.Work, outputs: Any, seconds: float = -1.0, in_background: bool = True) -> Work:
    """Start *prepared*, or carry it out here unless *in_background*, and return its Work either way."""
    if in_background:
        prepared.start()
    else:
        prepared.wait(seconds)
    return Work(prepared, outputs, seconds)


def finish(prepared: work.Work, async_op: bool, outputs: Any, seconds: float = -1.0) -> Work | None:
    """Carry *prepared* out here and return None, or start it and return its Work when *async_op*.

    *seconds* bounds the waiting, here or in ``Work.wait``; a process outside the group gets None.
    """
    if not async_op:
        prepared.wait(seconds)
        return None
    started = prepared.start()
    return None if started is None else Work(started, outputs, seconds)


def _run_in_waiter(task: Callable[[], Any]) -> None:
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


between_graphs(globals(), __all__)
