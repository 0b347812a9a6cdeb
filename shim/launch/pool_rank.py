"""A rank process of a pool: takes tasks from one pipe, answers on another, and ends with the pool.

The pool starts ``main()`` with two inherited file descriptors as arguments, for tasks and for answers. A task is a length and a
pickle of (target, arguments, search path); an answer is a length and a pickle of (value, error text).
"""

from __future__ import annotations

import faulthandler
import importlib
import io
import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any

from shim.launch.endings import dying_with, how_it_ended

__all__ = ["main", "read_message", "write_message"]

_LENGTH = struct.Struct("<Q")


def read_message(stream: io.BufferedReader) -> bytes | None:
    """Return the next message, or None at the end of the stream."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    body = stream.read(length)
    return body if len(body) == length else None


def write_message(stream: io.BufferedWriter, body: bytes) -> None:
    """Write a message that ``read_message`` returns on the other side."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def _find_target(target: str) -> Callable[..., Any]:
    """Return the function called "module:qualname"."""
    module, _, qualname = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]  # a name leads anywhere; calling it will tell


def _carry_out(task: bytes) -> bytes:
    """Run a pickled task and return the pickled answer; what it raises becomes the text of a traceback."""
    try:
        target, arguments, search_path = pickle.loads(task)
        sys.path[:] = search_path + [entry for entry in sys.path if entry not in search_path]
        function = _find_target(target)
        positional, keywords = pickle.loads(arguments)
        return pickle.dumps((function(*positional, **keywords), None))
    except BaseException:  # a test's own exit or interrupt is its failure, not the end of the process
        return pickle.dumps((None, traceback.format_exc()))


def _carry_out_in_copy(task: bytes, tasks: io.BufferedReader, answers: io.BufferedWriter) -> None:
    """Run a pickled task in a copy of this process and answer; the copy ends when the pool has heard from all ranks.

    Another rank may need what it serves until then. The pool says so with an empty message.
    """
    reading, writing = os.pipe()
    staying, leaving = os.pipe()
    parent = os.getpid()
    copy = os.fork()
    if copy == 0:
        dying_with(parent)()
        os.close(reading)
        os.close(leaving)
        _tell_stacks()
        answer = _carry_out(task)
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writing, "wb") as stream:
            write_message(stream, answer)
        os.read(staying, 1)
        os._exit(0)  # what this process would do at its end is the business of the one it was copied from
    os.close(writing)
    os.close(staying)
    signal.signal(
        signal.SIGUSR1, lambda *_: os.kill(copy, signal.SIGUSR1)
    )  # the pool asks only ranks that have not answered
    with os.fdopen(reading, "rb") as stream:
        heard = read_message(stream)
    has_died = heard is None
    if heard is None:
        _, ended = os.waitpid(copy, 0)
        told = f"this rank died: its process {how_it_ended(os.waitstatus_to_exitcode(ended))}"
        heard = pickle.dumps((None, told))
    write_message(answers, heard)
    read_message(tasks)
    os.close(leaving)
    if not has_died:
        os.waitpid(copy, 0)


def _tell_stacks() -> None:
    """Write the stacks of all threads when the pool asks where a late rank is."""
    faulthandler.unregister(signal.SIGUSR1)  # while registered, registering leaves the handler that was set since
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def main() -> None:
    """Serve tasks until the pool closes its end. Arguments after the descriptors name modules to import before the first one."""
    dying_with(os.getppid())()
    tasks = os.fdopen(int(sys.argv[1]), "rb")
    answers = os.fdopen(int(sys.argv[2]), "wb")
    faulthandler.enable()
    _tell_stacks()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal reaches all; the pool ends its ranks itself
    preloaded = sys.argv[3:]
    for module in preloaded:
        importlib.import_module(module)
    while (task := read_message(tasks)) is not None:
        if preloaded:
            _carry_out_in_copy(task, tasks, answers)
            continue
        answer = _carry_out(task)
        sys.stdout.flush()
        sys.stderr.flush()
        write_message(answers, answer)
