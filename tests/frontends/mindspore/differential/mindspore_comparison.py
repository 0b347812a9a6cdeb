"""What one rank's call did, with MindSpore itself or with the frontend, and whether both did the same."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Outcome = dict[str, Any]

# What Python itself says where a case is a call that does not fit the signature.
CALLED_WRONGLY = (
    "broadcast() missing 1 required positional argument: 'src'",
    "__call__() got an unexpected keyword argument 'input_x'",
)


def outcome(call: Callable[[], Any]) -> Outcome:
    """Return what *call* returns, or the classes that its exception is of, the most special one first, and the file it is from."""
    try:
        return {"returned": call()}
    except Exception as error:  # whatever the real one raises is to be compared
        kinds = [kind.__name__ for kind in type(error).__mro__]
        where = Path(traceback.extract_tb(error.__traceback__)[-1].filename).name
        return {"raised": kinds, "said": str(error)[:300], "where": where}


def assert_same(theirs: Outcome, ours: Outcome, raises: str | None) -> None:
    """Assert that both returned the same; or where it *raises*, that theirs is of this very class, and ours of it too."""
    if raises is None:
        assert "returned" in theirs, theirs
        assert ours == theirs
    else:
        assert_raised(theirs, raises)
        assert raises in ours.get("raised", []), (theirs, ours)


def assert_raised(theirs: Outcome, raises: str) -> None:
    """Assert that theirs is an exception of the class *raises*, and not of a mistake in the case itself."""
    assert theirs.get("raised", ["nothing"])[0] == raises, theirs
    assert theirs["said"].endswith(CALLED_WRONGLY) or not theirs["where"].startswith("real_"), theirs
