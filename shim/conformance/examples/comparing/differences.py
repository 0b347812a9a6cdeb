"""Says in how many places what is shown differs from what is seen, so that a record knows one difference from another."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["all_differences"]

_MOST = 6  # differences that are told
_LONGEST = 8  # items of each that are told


def all_differences(shown: Sequence[str], seen: Sequence[str]) -> str:
    """Return where the items *shown* differ from those *seen*, in a line such as ``in all: ( for [, = for nothing``."""
    matcher = difflib.SequenceMatcher(None, list(map(_plain, shown)), list(map(_plain, seen)), autojunk=False)
    found = [
        f"{_text(shown[begin:end])} for {_text(seen[start:stop])}"
        for what, begin, end, start, stop in matcher.get_opcodes()
        if what != "equal"
    ]
    rest = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
    return f"in all: {', '.join([*found[:_MOST], *rest])}"


def _plain(item: str) -> str:
    """Return a number as all documents that mean it write it, and other items as they are."""
    try:
        return f"{complex(item.replace(' ', '')):.4g}"
    except ValueError:
        return item


def _text(items: Sequence[str]) -> str:
    return " ".join([*items[:_LONGEST], *(["..."] if len(items) > _LONGEST else [])]) or "nothing"
