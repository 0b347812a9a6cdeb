"""The comments by which a case says for how many ranks it is, what they show, and what they raise.

Such a comment begins with the marker's word. One that begins with something like it is taken for a mistake, not for a remark.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from shim.conformance.examples.example import EVERY_RANK

RANKS, SHOWS, RAISES = "ranks", "shows", "raises"
_FORMS = {
    RANKS: "# ranks: 2, 4",
    SHOWS: "# shows: TEXT, # shows on rank 0: TEXT or # shows on ranks 0, 1: TEXT",
    RAISES: "# raises, # raises ValueError, # raises on rank 0: ValueError or # raises on ranks 0, 1",
}
_NUMBERS = r"\d+(?:\s*,\s*\d+)*"
_ON = rf"(?:\s+on\s+ranks?\s+(?P<on>{_NUMBERS}))"
_PATTERNS = {
    RANKS: re.compile(rf"ranks:\s*(?P<text>{_NUMBERS})\s*$"),
    SHOWS: re.compile(rf"shows{_ON}?:\s?(?P<text>.*)$"),
    RAISES: re.compile(rf"raises(?:{_ON}(?:\s*:\s*(?P<of>\w+))?|(?:\s*:)?\s+(?P<text>\w+))?\s*$"),
}
# A word that is used as a marker is: "show: 1", "Shows on rank 0: 1", "raise ValueError"
_USED = re.compile(
    r"(?P<word>[A-Za-z]+)(?:\s*:|\s+on\s+ranks?\b|\s+\w*(?:Error|Exception)\s*$|(?<=[Rr]aise)\s*$|(?<=[Rr]aised)\s*$)"
)
_ALIKE = 0.75  # of 1: "show", "Shows", "raised" and "rank" are like a marker, "ranges" and "shape" are not


@dataclass(frozen=True)
class Marker:
    """A comment of ``kind`` about ``ranks``: what they show, the class of what they raise ("" for any), or how many they are."""

    kind: str
    ranks: tuple[int, ...]
    text: str


def marker_in(comment: str) -> Marker | None:
    """Return the marker that *comment* is, None for a remark. Raises ValueError for one that has not the form of its word."""
    text = comment.lstrip("#").strip()
    for kind, pattern in _PATTERNS.items():
        if found := pattern.match(text):
            of = found.groupdict()
            on = _numbers(of["on"]) if of.get("on") else (EVERY_RANK,)
            return Marker(kind, on, of.get("of") or of["text"] or "")
    _refuse_mistake(text)
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in *text*, which has commas between them."""
    return tuple(int(number) for number in text.split(","))


def _refuse_mistake(text: str) -> None:
    """Raise ValueError where *text* begins with a marker's word, or one like it that is used as a marker is."""
    first = text.split(maxsplit=1)[0] if text else ""
    if first in (SHOWS, RAISES):
        raise ValueError(f"{first} has the form {_FORMS[first]}")
    if used := _USED.match(text):
        word = used["word"]
        if word in _FORMS:
            raise ValueError(f"{word} has the form {_FORMS[word]}")
        for near in difflib.get_close_matches(word.lower(), _FORMS, n=1, cutoff=_ALIKE):
            raise ValueError(f"{word!r} is no marker; {near} has the form {_FORMS[near]}")
