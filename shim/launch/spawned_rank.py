"""A rank process that calls one function: what it is told, and what it hands back over a pipe."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from shim._native import set_makes_no_calls
from shim.errors import PeerLostError
from shim.launch.endings import dying_with

INTERRUPTED = 128 + signal.SIGINT  # the exit status of a rank that Ctrl-C has ended


class Answer(NamedTuple):
    """What a rank hands back: the pickle of what its function returned, or of the traceback of what that raised."""

    pickled: bytes
    has_raised: bool
    is_victim: bool  # it raised because of another rank's failure
    at: float  # in seconds of time.monotonic, which is one clock for all processes of a host


def be_rank(
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
        sys.exit(INTERRUPTED)
    try:
        pickled = pickle.dumps(func(*arguments))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit:  # its status says all
        raise
    except BaseException as error:  # whatever else the user's function raises, pytest.fail too, is handed to the parent
        text = pickle.dumps(traceback.format_exc())
        answers.send(Answer(text, True, _came_of_another(error), time.monotonic()))
        sys.exit(1)
    answers.send(Answer(pickled, False, False, time.monotonic()))


def _came_of_another(error: BaseException | None) -> bool:
    """Tell whether *error* was raised because another rank had gone, or while that was dealt with."""
    while error is not None:
        if isinstance(error, PeerLostError):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


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
