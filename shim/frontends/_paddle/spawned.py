"""The processes that ``spawn`` has started: what they do, what becomes of them, and what they return."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any

from shim.core.callers import Caller
from shim.frontends._paddle.errors import ArgumentTypeError, RankFailedError
from shim.frontends._paddle.spawn_options import plan_for
from shim.launch.pool_rank import die_with_parent

__all__ = ["MultiprocessContext", "Returned", "start"]

_GRACE = 2.0  # seconds between asking a process to end and killing it
_NOTICE = 0.5  # seconds in which the others may see by themselves that a rank failed
_INTERVAL = 1.0  # seconds between looks at the processes themselves
_VICTIM = "PeerLostError"  # what a rank raises because of another one's failure
_RETURNED, _RAISED = b"r", b"e"


class Returned:
    """What one process has handed back and nobody has taken: its value, or its traceback."""

    def __init__(self, fetch: Callable[[float | None], None]) -> None:
        self._fetch = fetch  # waits for what comes, for so many seconds
        self._pickles: deque[bytes] = deque()

    def put_pickle(self, pickled: bytes) -> None:
        """Add what *pickled* stands for."""
        self._pickles.append(pickled)

    def empty(self) -> bool:
        """Tell whether there is nothing to take."""
        self._fetch(0.0)
        return not self._pickles

    def get(self) -> Any:
        """Take what came first, waiting for it. Raises EOFError where the process has ended without."""
        if not self._pickles:
            self._fetch(None)
        if not self._pickles:
            raise EOFError("the process has handed back nothing here")
        return pickle.loads(self._pickles.popleft())


class MultiprocessContext:
    """The processes of one ``spawn``: ``processes``, their ``return_queues`` and ``error_queues``, and ``join``."""

    def __init__(self, function: str, processes: Sequence[Any], answers: Sequence[Connection]) -> None:
        self.processes = processes
        self.return_queues = [Returned(partial(self._fetch, index)) for index in range(len(processes))]
        self.error_queues = [Returned(partial(self._fetch, index)) for index in range(len(processes))]
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}
        self._function = function
        self._answers = dict(enumerate(answers))

    def join(self, timeout: float | None = None) -> bool:
        """Wait until a process has ended, at most *timeout* seconds, and tell whether all have.

        Raises: an Exception with the traceback of the process that failed; the others have ended then.
        """
        if not self.sentinels:
            return True
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not self._look(min(_INTERVAL, until - time.monotonic())) and time.monotonic() < until:
            pass
        return not self.sentinels

    def _look(self, seconds: float) -> bool:
        """Wait so long for something to happen, and tell whether it was the end of a process. Raises for one that failed.

        A sentinel is a pipe, which children of the process may hold open after its end; the process itself is looked at too.
        """
        ready = connection.wait([*self.sentinels, *self._answers.values()], max(0.0, seconds))
        for index in [index for index, answer in self._answers.items() if answer in ready]:
            self._fetch(index, None)
        ended = [
            one for one, index in self.sentinels.items() if one in ready or self.processes[index].exitcode is not None
        ]
        if any(self._see_end(one) for one in ended):
            raise self._failure()
        return bool(ended)

    def end(self) -> None:
        """End the processes that are left."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(_GRACE)
            if process.is_alive():
                process.kill()
                process.join()
        self.sentinels.clear()
        while self._answers:
            self._answers.popitem()[1].close()

    def _see_end(self, sentinel: int) -> bool:
        """Take what the process that has ended left behind, and tell whether it failed."""
        index = self.sentinels.pop(sentinel)
        self.processes[index].join()
        self._fetch(index, 0.0)  # there by now or not at all; its own children may hold the pipe open for longer
        return bool(self.processes[index].exitcode)

    def _fetch(self, index: int, timeout: float | None) -> None:
        """Read what process *index* hands back, which may be waiting to be rid of it; its end closes the pipe."""
        answer = self._answers.get(index)
        if answer is None or not answer.poll(timeout):
            return
        del self._answers[index]
        try:
            message = answer.recv_bytes()
        except (EOFError, OSError):  # it ended before it had anything to say, or in the middle of it
            message = b""
        finally:
            answer.close()
        if message[:1] == _RETURNED:
            self.return_queues[index].put_pickle(message[1:])
        elif message[:1] == _RAISED:
            self.error_queues[index].put_pickle(message[1:])

    def _failure(self) -> RankFailedError:
        """End all processes, and return the error of the one that failed first.

        The others have a moment in which they may fail because of it; that it is gone is then all they can tell.
        """
        until = time.monotonic() + _NOTICE
        while self.sentinels and (left := until - time.monotonic()) > 0:
            for sentinel in connection.wait(list(self.sentinels), left):
                if isinstance(sentinel, int):
                    self._see_end(sentinel)
        failed = [index for index, process in enumerate(self.processes) if process.exitcode]
        self.end()
        stories = {index: self._story_of(index) for index in failed}
        first = next((index for index in failed if not _is_victim(stories[index])), failed[0])
        return RankFailedError(f"{self._function}: rank {first} of {len(self.processes)} {stories[first]}")

    def _story_of(self, index: int) -> str:
        status = self.processes[index].exitcode
        if not self.error_queues[index].empty():
            return f"raised an error:\n\n{self.error_queues[index].get()}".rstrip("\n")
        return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _is_victim(story: str) -> bool:
    """Tell whether a rank failed because another one had gone, which the last lines of its traceback say."""
    return any(_VICTIM in line for line in story.splitlines()[-4:])


def start(
    caller: Caller,
    func: Callable[..., Any],
    args: Iterable[Any],
    count: Any,
    join: bool,
    daemon: bool,
    options: Mapping[str, Any],
) -> MultiprocessContext:
    """Start the processes, and wait for them where *join* asks for it."""
    if not callable(func):
        raise caller.explain(ArgumentTypeError(f"func must be callable, got {func!r}"))
    plan = plan_for(caller, count, options)
    maker = multiprocessing.get_context(plan.start_method)
    try:
        arguments = tuple(args)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"args must be a tuple of func's arguments, got {args!r}")) from None
    end_with_parent = threading.current_thread() is threading.main_thread()  # of a thread's, the kernel sees its end
    processes: list[Any] = []
    answers: list[Connection] = []
    context = MultiprocessContext(caller.function, processes, answers)
    try:
        for environment in plan.environments:
            mine, theirs = maker.Pipe(duplex=False)
            answers.append(mine)
            process = maker.Process(  # type: ignore[attr-defined]  # every start method's context has it
                target=_run, args=(func, arguments, theirs, environment, end_with_parent), daemon=bool(daemon)
            )
            _start(caller, process)
            theirs.close()
            processes.append(process)
        context = MultiprocessContext(caller.function, processes, answers)
        while join and not context.join():
            pass
    except BaseException:  # Ctrl-C too: no rank is left behind
        context.end()
        raise
    return context


def _start(caller: Caller, process: Any) -> None:
    try:
        process.start()
    except (AttributeError, TypeError, pickle.PicklingError) as error:  # a new process is sent them
        raise caller.explain(ArgumentTypeError(f"func and args must be picklable: {error}")) from None


def _run(
    func: Callable[..., Any],
    arguments: tuple[Any, ...],
    answer: Connection,
    environment: Mapping[str, str],
    end_with_parent: bool,
) -> None:
    """Be a rank: call *func*, and hand back what it returns, or the traceback of what it raises."""
    if end_with_parent:
        _end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    try:
        message = _RETURNED + pickle.dumps(func(*arguments))
    except KeyboardInterrupt:
        return
    except Exception:  # whatever the user's function raises is handed to the parent
        answer.send_bytes(_RAISED + pickle.dumps(traceback.format_exc()))
        sys.exit(1)
    answer.send_bytes(message)


def _end_with_parent() -> None:
    """Have this process end with the one that called ``spawn``, however that ends, and if it has already ended.

    The kernel sees to it where that is the parent. A fork server's child waits for it in a thread.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if parent.pid == os.getppid():
        die_with_parent()
    if parent.pid != os.getppid():
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)
