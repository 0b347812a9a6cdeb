"""Tracebacks as ranks write them: without the frames of this project, and compared between ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_OURS = tuple(
    b'  File "' + os.fsencode(os.path.join(os.path.dirname(os.path.dirname(__file__)), part, ""))
    for part in ("core", "frontends", "substitution")
)
# What an error that all ranks raise says differently on each: who reads it, when, and where something lies in its memory.
_OF_ONE_RANK = re.compile(rb"\(rank \d+ of \d+[^()]*\)|  <- this rank$|[\d.]+ m?s ago|0x[0-9a-f]+")


def without_our_frames(lines: Iterable[bytes]) -> list[bytes]:
    """Return *lines*, in whose tracebacks of errors of this project the frames within it are left out; others may be errors of ours."""
    kept: list[bytes] = []
    whole: list[bytes] = []  # of the traceback that is being read
    cut: list[bytes] = []
    hides = False
    for line in lines:
        if line.startswith(b"  "):
            if line.startswith(b"  File "):
                hides = line.startswith(_OURS)
            whole.append(line)
            if not hides:
                cut.append(line)
        else:
            kept += cut if cut and line.startswith(b"shim.") else whole
            kept.append(line)
            whole, cut, hides = [], [], False
    return kept + whole


def what_it_says(lines: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return what is equal for the *lines* of two ranks that have told the same."""
    return tuple(_OF_ONE_RANK.sub(b"", line) for line in lines)
