"""Choosing examples by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

__all__ = ["is_chosen", "unmatched"]


def is_chosen(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether one of *patterns* means the example called *name*; without patterns all are meant.

    A pattern is the example's name, the name of its function with or without the modules, or has ``*`` and ``?`` in it.
    """
    function = name.partition("#")[0].partition(":")[0]
    ways = (name, function, function.rpartition(".")[2])
    return not patterns or any(fnmatchcase(way, pattern) for pattern in patterns for way in ways)


def unmatched(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return a line for every pattern that means none of *names*, with the nearest of them."""
    known = list(names)
    lines = []
    for pattern in patterns:
        if not any(is_chosen(name, [pattern]) for name in known):
            near = difflib.get_close_matches(pattern, known, n=3, cutoff=0.5)
            lines.append(f"there is no example {pattern!r}" + (f"; is it {', '.join(near)}?" if near else ""))
    return lines
