"""Choosing examples by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase


def is_chosen(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether one of *patterns* means the example called *name*; without patterns all are meant.

    A pattern is the example's name, the name of its function with or without the modules, or has ``*`` and ``?`` in it.
    """
    return not patterns or any(fnmatchcase(way, pattern) for pattern in patterns for way in _ways(name))


def _ways(name: str) -> tuple[str, str, str]:
    function = name.partition("#")[0].partition(":")[0]
    return name, function, function.rpartition(".")[2]


def unmatched(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return a line for every pattern that means none of *names*, with the nearest of them."""
    known = {way: _ways(name)[1] for name in names for way in reversed(_ways(name))}
    lines = []
    for pattern in patterns:
        if not any(fnmatchcase(way, pattern) for way in known):
            near = dict.fromkeys(known[way] for way in difflib.get_close_matches(pattern, known, n=3))
            lines.append(f"there is no example {pattern!r}" + (f"; is it {', '.join(near)}?" if near else ""))
    return lines
