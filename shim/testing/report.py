"""How a test ended on a rank, as the rank process reports it to pytest's process."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import pytest

_OUTCOME = "_shim_outcome"  # an error's attribute
_RUNS_TESTS = "shim.testing.rank"  # the module whose frames come first in a traceback
_NOT_THE_TESTS = ("shim", "_pytest", "contextlib")  # modules that an error passes through


@dataclass(frozen=True)
class Failure:
    """What the test raised on a rank, and when, by a clock that all processes of the machine share.

    ``outcome`` is what ``shim.testing.raises`` says of a block that failed, as "did not raise", and empty for other failures. It
    ``is_as_expected`` where the block failed for what other ranks did.
    """

    when: float  # seconds
    headline: str  # "ValueError: the message's first line (test_it.py:7)"
    place: str  # " (test_it.py:7)"
    traceback: str
    outcome: str = ""
    is_as_expected: bool = False


@dataclass(frozen=True)
class Report:
    """How the test ended on a rank: passed, failed, skipped or xfailed, and for which reason.

    Or that its module is ``loaded``, and it can begin.
    """

    ended: str
    reason: str = ""
    failure: Failure | None = None


def name_of(error: BaseException) -> str:
    """Return the public name of the class of *error*."""
    return next(kind.__name__ for kind in type(error).__mro__ if not kind.__name__.startswith("_"))


def note_outcome(failure: BaseException, outcome: str, is_as_expected: bool = False) -> None:
    """Keep on *failure* what its ``Failure`` is to say of the block that it comes from."""
    failure.__dict__[_OUTCOME] = outcome, is_as_expected


def failed(error: BaseException, hides_frames: bool) -> Report:
    """Return the report of a test that *error* has ended; *hides_frames* leaves out the frames that pytest would leave out."""
    when = time.monotonic()
    first_line = _message_of(error).partition("\n")[0]
    place = _place(error)
    is_by_pytest = isinstance(error, pytest.fail.Exception)  # whose message says that it is a failure
    headline = ": ".join(filter(None, ["" if is_by_pytest else name_of(error), first_line])) + place
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and frames.tb_frame.f_globals["__name__"] == _RUNS_TESTS:
        frames = frames.tb_next
    if hides_frames:
        frames = _unhidden(error, frames)
        for cause in _causes_of(error):
            cause.__traceback__ = _unhidden(cause, cause.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, frames))
    outcome, is_as_expected = error.__dict__.get(_OUTCOME, ("", False))
    return Report("failed", first_line, Failure(when, headline, place, text, outcome, is_as_expected))


def _unhidden(error: BaseException, frames: TracebackType | None) -> TracebackType | None:
    """Return *frames* of *error* without those that ask pytest to hide them, or all where none is left."""
    if frames is None:
        return None
    raised = pytest.ExceptionInfo.from_exc_info((type(error), error, frames))
    kept: TracebackType | None = None
    for entry in reversed(raised.traceback):
        if not entry.ishidden(raised):
            frame = entry._rawentry
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept or frames


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # of a class of the test's own
        return f"<its __str__ raised {name_of(failure)}>"


def _causes_of(error: BaseException) -> list[BaseException]:
    """Return the errors that Python shows above *error*."""
    causes: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and all(one is not cause for cause in causes):
        causes.append(one)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return causes[1:]


def _place(error: BaseException) -> str:
    """Return, in parentheses, the last line on the way to *error* that is of the test or of what it tests."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THE_TESTS and "site-packages" not in file:
            place = f" ({os.path.basename(file)}:{line})"
    return place


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return "rank 0" or "ranks 0, 1"."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
