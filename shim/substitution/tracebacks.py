"""The traceback of an error that ends a program, without the frames of this package, as it would be without substitution."""

from __future__ import annotations

import builtins
import itertools
import os
import sys
from collections.abc import Iterator
from types import TracebackType

_OURS = os.path.join(os.path.dirname(__file__), "")


def hide_our_frames() -> None:
    """Have the error that is about to end this process shown without our frames.

    Call it last, as who shows the error is the ``sys.excepthook`` of now, which may be the program's own.
    """
    show = sys.excepthook

    def show_the_programs(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        _cut(error, set())
        show(kind, error, error.__traceback__)

    sys.excepthook = show_the_programs


def _cut(error: BaseException | None, seen: set[int]) -> None:
    """Take our frames out of the traceback of *error*, and of those that came before it or are part of it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _cut_traceback(error)
    group = getattr(builtins, "BaseExceptionGroup", ())  # which Python 3.10 has not
    parts = error.exceptions if isinstance(error, group) else ()
    for other in (error.__cause__, error.__context__, *parts):
        _cut(other, seen)


def _cut_traceback(error: BaseException) -> TracebackType | None:
    since_start = itertools.dropwhile(_is_before_program, _entries(error.__traceback__))
    kept = [entry for entry in since_start if not _is_ours(entry)]
    if not kept and not isinstance(error, SyntaxError):  # which is the program's, and says where by itself
        return error.__traceback__
    cut = None
    for entry in reversed(kept):
        cut = TracebackType(cut, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return cut


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_ours(entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(_OURS)


def _is_before_program(entry: TracebackType) -> bool:
    """Tell whether *entry* is of what starts the program: runpy has started this package, which then looks for the program."""
    return _is_ours(entry) or entry.tb_frame.f_globals.get("__name__") in ("runpy", "importlib.util")
