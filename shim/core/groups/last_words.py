"""What a rank says when something ends its program: to the other ranks why, and to its user where it was."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
from types import TracebackType

_before = sys.excepthook
_notes_exceptions = False
_said: str = ""
_shows_traceback = False  # at SIGTERM


def begin_to_listen() -> None:
    """Note the exception that ends the program, and show a traceback when SIGTERM does, unless the program handles that."""
    global _before, _notes_exceptions
    if not _notes_exceptions:  # once: who comes later may call this one
        _before, sys.excepthook = sys.excepthook, _note_exception
        _notes_exceptions = True
    _show_traceback_at_sigterm()


def end_listening() -> None:
    """Leave SIGTERM as it was found, or as the program has set it since."""
    global _shows_traceback
    if _shows_traceback and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        faulthandler.unregister(signal.SIGTERM)
    _shows_traceback = False


def reason() -> str:
    """Return in one line which exception is ending the program, and where it was raised; nothing where there is none."""
    return _said


def _note_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    global _said
    try:
        said = f"{kind.__qualname__}: {error}".partition("\n")[0].removesuffix(": ")
    except Exception:  # an exception's own text may fail
        said = kind.__qualname__
    _said = (_place(trace) + said).encode(errors="replace").decode()
    _before(kind, error, trace)


def _place(trace: TracebackType | None) -> str:
    """Return the last line of the program itself on the way to an exception, with a colon behind it."""
    place = ""
    for frame, line in traceback.walk_tb(trace):
        if not frame.f_globals.get("__name__", "").startswith(("shim.core", "shim.frontends")):
            place = f"{os.path.basename(frame.f_code.co_filename)}:{line}: "
    return place


def _show_traceback_at_sigterm() -> None:
    global _shows_traceback
    if _shows_traceback or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or sys.__stderr__ is None:
        return
    if (module := sys.modules.get("multiprocessing.process")) and module.current_process().daemon:
        return  # its parent ends it by SIGTERM as a matter of course
    try:
        # The signal then ends the process as it would have: nothing waits for the interpreter.
        faulthandler.register(signal.SIGTERM, file=sys.__stderr__, all_threads=False, chain=True)
    except (OSError, ValueError, RuntimeError):
        return  # there is no file behind standard error
    _shows_traceback = True


# Processes that the program forks are no ranks, and are ended by SIGTERM as a matter of course.
os.register_at_fork(after_in_child=end_listening)
