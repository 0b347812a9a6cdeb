"""Call a function in several processes, of which each takes the next argument when it is ready."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from shim.launch.endings import dying_with

_Task = TypeVar("_Task")
_Done = TypeVar("_Done")
_AHEAD = 2  # tasks per process that are handed out: one to work on, one to go on with


def for_each(
    function: Callable[[_Task], _Done], tasks: Sequence[_Task], jobs: int, crashed: Callable[[_Task], _Done]
) -> Iterator[tuple[int, _Done]]:
    """Give the number of each of *tasks* and what *function* returns for it, in the order in which they are done, by *jobs* processes.

    With one job or one task, this process does it all. A task with which a process dies gives what *crashed* returns; the others go on.
    After an exception in the caller, Ctrl-C among them, the processes are ended.
    """
    if min(jobs, len(tasks)) < 2:
        yield from ((number, function(task)) for number, task in enumerate(tasks))
        return
    remaining = list(enumerate(tasks))[::-1]  # the next one is the last
    while remaining:
        suspects: list[tuple[int, _Task]] = []
        yield from _in_pool(function, remaining, min(jobs, len(remaining)), suspects)
        # A process has died: which of these it worked on shows when each has a process of its own.
        for number, task in suspects:
            alone, again = [(number, task)], list[tuple[int, _Task]]()
            yield from _in_pool(function, alone, 1, again)
            if again:
                yield number, crashed(task)


def _in_pool(
    function: Callable[[_Task], _Done], remaining: list[tuple[int, _Task]], jobs: int, suspects: list[tuple[int, _Task]]
) -> Iterator[tuple[int, _Done]]:
    """Do *remaining* tasks from its end on. When a process dies, stop, with the tasks that were handed out and not done in *suspects*."""
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=_begin_worker, initargs=(os.getpid(),)
    )
    begun: dict[Future[_Done], tuple[int, _Task]] = {}
    try:
        while begun or (remaining and not suspects):
            while remaining and not suspects and len(begun) < jobs * _AHEAD:
                number, task = remaining.pop()
                try:
                    begun[pool.submit(function, task)] = number, task
                except BrokenProcessPool:
                    suspects.append((number, task))
            for future in wait(begun, return_when=FIRST_COMPLETED).done:
                number, task = begun.pop(future)
                try:
                    done = future.result()
                except BrokenProcessPool:
                    suspects.append((number, task))
                else:
                    yield number, done
        pool.shutdown()
    except BaseException:
        _end(pool)
        raise


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of *pool* now; what they work on is not needed any more."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the process that reads the results, and die with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    dying_with(parent)()
