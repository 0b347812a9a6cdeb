"""Wrong calls: what they raise where they are made, what the other ranks are told, and which of a table's calls failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from shim.errors import MismatchError, ShimError

Kind = type[Exception] | tuple[type[Exception], ...]


@contextmanager
def named(case: str) -> Iterator[None]:
    """Begin what a failure within the block says with the *case*, of a table whose cases are all in one test."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error


def assert_refused(kind: Kind, words: str | None, wrong: Callable[..., Any], *arguments: Any, **keywords: Any) -> str:
    """Assert that *wrong* raises *kind*, which is ours too and whose text has *words*; return that text."""
    with pytest.raises(kind, match=words) as caught:
        wrong(*arguments, **keywords)
    assert isinstance(caught.value, ShimError)
    return str(caught.value)


def assert_refused_on_one(
    rank: int, kind: Kind, wrong: Callable[..., Any], right: Callable[..., Any], *arguments: Any
) -> str:
    """Make the *wrong* call on rank 1 and the *right* one elsewhere: rank 1 gets *kind*, the others are told; return the text."""
    return assert_refused(kind if rank == 1 else MismatchError, None, wrong if rank == 1 else right, *arguments)
