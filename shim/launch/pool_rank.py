"""A rank process of a pool: takes tasks from one pipe, answers on another, and ends with the pool.

The pool starts ``main()`` with two inherited file descriptors as arguments, for tasks and for answers. A task is (target,
pickled arguments, search path), an answer (value, error text).
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from shim.launch.endings import dying_with


def _find_target(target: str) -> Callable[..., Any]:
    """Return the function called "module:qualname"."""
    module, _, qualname = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]  # a name leads anywhere; calling it will tell


def _carry_out(target: str, arguments: bytes, search_path: list[str]) -> bytes:
    """Call *target* and return the pickled answer; what it raises becomes the text of a traceback."""
    try:
        sys.path[:] = search_path + [entry for entry in sys.path if entry not in search_path]
        function = _find_target(target)
        positional, keywords = pickle.loads(arguments)
        return pickle.dumps((function(*positional, **keywords), None))
    except BaseException:  # a test's own exit or interrupt is its failure, not the end of the process
        return pickle.dumps((None, traceback.format_exc()))


def serve(tasks: int, answers: int) -> None:
    """Carry out the tasks from one descriptor until the pool closes its end, and answer on the other."""
    told, answer = Connection(tasks, writable=False), Connection(answers, readable=False)
    while True:
        try:
            task = told.recv()
        except (EOFError, OSError):
            return
        process = os.getpid()
        found = _carry_out(*task)
        sys.stdout.flush()
        sys.stderr.flush()
        if os.getpid() != process:  # the task has forked, and this is the child: the tasks are its parent's
            os._exit(0)
        answer.send_bytes(found)


def main() -> None:
    """Serve the descriptors that the arguments name, in a process of its own."""
    dying_with(os.getppid())()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # the pool asks where a late rank is
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal reaches all; the pool ends its ranks itself
    serve(int(sys.argv[1]), int(sys.argv[2]))
