"""``shim.testing.raises``: an error that is expected on every rank."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import EngineError, PeerLostError
from shim.testing.report import name_of, note_outcome, ranks_in_words

_RAISES = Caller("shim.testing.raises")


def raises(
    expected: type[BaseException] | tuple[type[BaseException], ...],
    *,
    match: str | None = None,
    check: Callable[[Any], bool] | None = None,
) -> contextlib.AbstractContextManager[pytest.ExceptionInfo[BaseException]]:
    """Expect that the block raises on every rank, as ``pytest.raises`` does on one; *check* needs pytest 8.4.

    At the end the ranks meet: none goes on where another has not raised, or is still in a collective of the block. They then fail, too,
    instead of waiting. Where there is no world, or the error has ended it, they do not meet.
    """
    return _Raises(expected, match, {} if check is None else {"check": check})


class _Raises(contextlib.AbstractContextManager[pytest.ExceptionInfo[BaseException]]):
    """A class, so that no frames of ``contextlib`` stand in the traceback of a test."""

    def __init__(
        self, expected: type[BaseException] | tuple[type[BaseException], ...], match: str | None, others: dict[str, Any]
    ) -> None:
        self._on_this_rank: contextlib.AbstractContextManager[pytest.ExceptionInfo[BaseException]]
        self._on_this_rank = pytest.raises(expected, match=match, **others)

    def __enter__(self) -> pytest.ExceptionInfo[BaseException]:
        return self._on_this_rank.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> bool:
        __tracebackhide__ = True
        try:
            is_expected = bool(self._on_this_rank.__exit__(kind, error, frames))
        except BaseException as failure:
            outcome = "did not raise" if error is None else f"raised {name_of(error)} with another message"
            note_outcome(failure, outcome)
            raise
        if is_expected and error is not None and groups.is_initialized() and not isinstance(error, EngineError):
            _meet(error)
        return is_expected


def _meet(error: BaseException) -> None:
    """Wait for the other ranks after an *error* that was expected. A rank that did not raise it has left the world, as its test has failed."""
    __tracebackhide__ = True
    try:
        calls.barrier(_RAISES, groups.world(_RAISES), True, "going on after an expected error")
    except PeerLostError as lost:
        raised, how = f"raised {name_of(error)}", str(lost).splitlines()[0]
        failure = pytest.fail.Exception(
            f"this rank {raised}, before {ranks_in_words(lost.ranks)} had raised as well\n{how}"
        )
        note_outcome(failure, raised, is_as_expected=True)
        raise failure from None
