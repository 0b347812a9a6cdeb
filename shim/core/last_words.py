"""What a rank says when something ends its program: to the other ranks why, and to its user where it was."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
from types import TracebackType

__all__ = ["begin_to_listen", "end_listening", "reason"]

_before = sys.excepthook
_said: str = ""
_shows_traceback = False  # at SIGTERM


def begin_to_listen() -> None:
    """Note the exception that ends the program, and show a traceback when SIGTERM does, unless the program handles that."""
    global _before
    if sys.excepthook is not _note_exception:
        _before = sys.excepthook
        sys.excepthook = _note_exception
    _show_traceback_at_sigterm()


def end_listening() -> None:
    """Leave SIGTERM as it was found."""
    global _shows_traceback
    if _shows_traceback:
        _shows_traceback = False
        faulthandler.unregister(signal.SIGTERM)


def reason() -> str:
    """Return in one line which exception is ending the program, and where it was raised; nothing where there is none."""
    return _said


def _note_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    global _said
    _said = traceback.format_exception_only(kind, error)[-1].strip().partition("\n")[0]
    frames = traceback.extract_tb(trace, limit=-1)
    if frames:
        _said = f"{os.path.basename(frames[0].filename)}:{frames[0].lineno}: {_said}"
    _before(kind, error, trace)


def _show_traceback_at_sigterm() -> None:
    global _shows_traceback
    if _shows_traceback or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or sys.__stderr__ is None:
        return
    try:
        # The signal then ends the process as it would have: nothing waits for the interpreter.
        faulthandler.register(signal.SIGTERM, file=sys.__stderr__, all_threads=False, chain=True)
    except (OSError, ValueError, RuntimeError):
        return  # there is no file behind standard error
    _shows_traceback = True


# Processes that the program forks are no ranks, and are ended by SIGTERM as a matter of course.
os.register_at_fork(after_in_child=end_listening)
