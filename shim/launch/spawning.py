"""Ranks that a program starts to call one of its functions: watched, joined, and ended when one of them fails."""

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from shim._native import set_makes_no_calls
from shim.errors import ArgumentError, ShimError
from shim.launch.endings import GRACE, NOTICE, came_of_another, dying_with, first_to_fail, how_it_ended

_INTERVAL = 1.0  # seconds between looks at the processes themselves
_INTERRUPTED = 128 + signal.SIGINT  # the exit status of a rank that Ctrl-C has ended


class _Answer(NamedTuple):
    """What a rank hands back: the pickle of what its function returned, or of the traceback of what that raised."""

    pickled: bytes
    has_raised: bool
    is_victim: bool  # it raised because of another rank's failure
    at: float  # in seconds of time.monotonic, which is one clock for all processes of a host


class RankFailedError(ShimError, RuntimeError):
    """A process that a program spawned ended with an error."""


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


class _Rank:
    """One process, and what it has handed back."""

    def __init__(self, process: Any, answers: Connection) -> None:
        self.process = process
        self.answers: Connection | None = answers  # until its one answer is read
        self.values = Returned(self.fetch)
        self.errors = Returned(self.fetch)
        self.was_told_to_end = False
        self.ended_at = math.inf
        self._raised: _Answer | None = None

    @property
    def status(self) -> int | None:
        return self.process.exitcode  # type: ignore[no-any-return]  # no one class is every start method's process

    @property
    def has_raised(self) -> bool:
        return self._raised is not None

    @property
    def is_victim(self) -> bool:
        return self._raised is not None and self._raised.is_victim

    @property
    def failed_at(self) -> float:
        return self.ended_at if self._raised is None else self._raised.at

    def fetch(self, timeout: float | None) -> None:
        """Read what the process hands back, which may be waiting to be rid of it; its end closes the pipe."""
        if self.answers is None or not self.answers.poll(timeout):
            return
        answers, self.answers = self.answers, None
        try:
            answer: _Answer = answers.recv()
        except (EOFError, OSError):  # it ended before it had anything to say, or in the middle of it
            return
        finally:
            answers.close()
        self._raised = answer if answer.has_raised else None
        (self.errors if answer.has_raised else self.values).put_pickle(answer.pickled)

    def see_end(self) -> None:
        """Take what the process that has ended left behind."""
        self.process.join()
        self.ended_at = time.monotonic()
        self.fetch(0.0)  # there by now or not at all; its own children may hold the pipe open for longer

    def tell_to_end(self) -> None:
        if self.process.is_alive():
            self.was_told_to_end = True
            self.process.terminate()

    def kill(self, until: float) -> None:
        """Kill the process if it does not end by itself *until* then, and close what belongs to it.

        One whose start was interrupted may be there without being known: it ends because its pipe is closed before it was told to begin.
        """
        if self.process.pid is not None:
            self.process.join(max(0.0, until - time.monotonic()))
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
        self.fetch(0.0)
        if self.answers is not None:
            self.answers.close()
            self.answers = None

    def story(self) -> str:
        if self._raised is not None:
            return f"raised an error:\n\n{pickle.loads(self._raised.pickled)}".rstrip("\n")
        return "was interrupted" if self.status == _INTERRUPTED else how_it_ended(self.status or 0)


class SpawnedRanks:
    """The processes that call *func* with *arguments*, one for each of *environments*; errors are told with *title* in front.

    With *join*, all have ended once it is made, or it raises what ``join`` does. ``processes`` are in rank order, and so is what they hand back, in ``return_queues`` and ``error_queues``; ``sentinels``
    has the rank of each that is not known to have ended. Raises ArgumentError for what cannot be sent to a process.
    """

    def __init__(
        self,
        title: str,
        func: Callable[..., Any],
        arguments: tuple[Any, ...],
        environments: Sequence[Mapping[str, str]],
        start_method: str,
        daemon: bool,
        join: bool = False,
    ) -> None:
        self._title = title
        self._ranks: list[_Rank] = []
        maker = multiprocessing.get_context(start_method)
        end_with_parent = (
            threading.current_thread() is threading.main_thread()
        )  # of a thread's, the kernel sees its end
        try:
            for environment in environments:
                mine, theirs = maker.Pipe()
                inherited = mine if start_method == "fork" else None
                process = maker.Process(  # type: ignore[attr-defined]  # every start method's context has it
                    target=_be_rank,
                    args=(func, arguments, theirs, inherited, environment, end_with_parent),
                    daemon=daemon,
                )
                self._ranks.append(_Rank(process, mine))
                with theirs:
                    _start(process)
                with suppress(BrokenPipeError):  # it has ended, which is seen when it is waited for
                    mine.send_bytes(b"begin")
            self.processes = [rank.process for rank in self._ranks]
            self.return_queues = [rank.values for rank in self._ranks]
            self.error_queues = [rank.errors for rank in self._ranks]
            self.sentinels: dict[int, int] = {process.sentinel: rank for rank, process in enumerate(self.processes)}
            while join and not self.join():
                pass
        except BaseException:  # Ctrl-C too, whenever it comes: no rank is left behind
            self.end()
            raise

    def join(self, timeout: float | None = None) -> bool:
        """Wait until a process has ended, at most *timeout* seconds, and tell whether all have.

        Raises: RankFailedError with the traceback of the process that failed first; the others have ended then.
        """
        if not self.sentinels:
            return True
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not self._look(min(_INTERVAL, until - time.monotonic())) and time.monotonic() < until:
            pass
        return not self.sentinels

    def end(self) -> None:
        """End the processes that are left."""
        for rank in self._ranks:
            rank.tell_to_end()
        until = time.monotonic() + GRACE  # for all of them together
        for rank in self._ranks:
            rank.kill(until)
        self.sentinels = {}

    def _look(self, seconds: float) -> bool:
        """Wait so long for something to happen, and tell whether it was the end of a process. Raises for one that failed.

        A sentinel is a pipe, which children of the process may hold open after its end; the process itself is looked at too.
        """
        answers = [rank.answers for rank in self._ranks if rank.answers is not None]
        ready = connection.wait([*self.sentinels, *answers], max(0.0, seconds))
        for rank in self._ranks:
            if rank.answers in ready:
                rank.fetch(None)
        ended = [
            sentinel
            for sentinel, index in self.sentinels.items()
            if sentinel in ready or self._ranks[index].status is not None
        ]
        for sentinel in ended:
            self._see_end(sentinel)
        if any(rank.status for rank in self._ranks):
            raise self._failure()
        return bool(ended)

    def _see_end(self, sentinel: int) -> None:
        self._ranks[self.sentinels.pop(sentinel)].see_end()

    def _failure(self) -> RankFailedError:
        """End all processes, and return the error of the one that failed first.

        The others have a moment in which they may fail because of it; that it is gone is then all they can tell.
        """
        until = time.monotonic() + NOTICE
        while self.sentinels and (left := until - time.monotonic()) > 0:
            for sentinel in connection.wait(list(self.sentinels), left):
                if isinstance(sentinel, int):
                    self._see_end(sentinel)
        self.end()
        first = first_to_fail(self._ranks)
        assert first is not None
        return RankFailedError(f"{self._title}: rank {self._ranks.index(first)} of {len(self._ranks)} {first.story()}")


def _start(process: Any) -> None:
    try:
        process.start()
    except (AttributeError, TypeError, pickle.PicklingError) as error:  # a new process is sent them
        raise ArgumentError(f"func and args must be picklable: {error}") from None


def _be_rank(
    func: Callable[..., Any],
    arguments: tuple[Any, ...],
    answers: Connection,
    other_end: Connection | None,
    environment: Mapping[str, str],
    end_with_parent: bool,
) -> None:
    """Call *func* in *environment*, and hand back what it returns, or the traceback of what it raises.

    It begins when it hears that the process that started it knows of it, and ends where that was interrupted before. *other_end* is
    that process's end of *answers*, where this process was forked and so has it too.
    """
    if end_with_parent:
        _end_with_parent()
    if other_end is not None:
        other_end.close()
    os.environ.clear()
    os.environ.update(environment)
    try:
        answers.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    try:
        pickled = pickle.dumps(func(*arguments))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except SystemExit:  # its status says all
        raise
    except BaseException as error:  # whatever else the user's function raises, pytest.fail too, is handed to the parent
        text = pickle.dumps(traceback.format_exc())
        answers.send(_Answer(text, True, came_of_another(error), time.monotonic()))
        sys.exit(1)
    answers.send(_Answer(pickled, False, False, time.monotonic()))


def _end_with_parent() -> None:
    """Have this process end with the one that spawned it, however that ends, and if it has already ended.

    The kernel sees to it where that is the parent. A fork server's child waits for it in a thread.
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    if parent.pid == os.getppid():
        dying_with(parent.pid)()
    else:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: Any) -> None:
    set_makes_no_calls(True)
    parent.join()
    os._exit(1)
