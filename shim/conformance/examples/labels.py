"""How documents say how many ranks there are, and of which of them they speak."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shim.conformance.examples.example import EVERY_RANK

if TYPE_CHECKING:
    from shim.conformance.examples.example import Step

__all__ = ["by_rank", "is_shown", "process_of", "ranks_of"]

# "2 devices", "2 process groups, 2 ranks", "world_size of 3", "(2 GPUs)", "Launch 2 processes", "two ranks"
_NUMBERS = {"two": 2, "three": 3, "four": 4, "eight": 8}
_COUNT = re.compile(
    r"\b(\d+|two|three|four|eight) (?:\w+ )?(?:devices|ranks|GPUs|gpus|processes|cards|workers)\b|world_size of (\d+)"
)
# At the end of a line: "# Rank 0", "# Rank 0 and 1", "(2 GPUs, out for rank 1)"
_TRAILING = re.compile(r"#\s*[Rr]anks?[- _]?(\d+(?:(?:\s*(?:,|and|&)\s*)\d+)*)\s*$")
_IN_PARENTHESES = re.compile(r"\s*\((?:\d+ GPUs?,?\s*)?(?:out|output)?\s*(?:for|on)?\s*rank[- _]?(\d+)\)\s*$", re.I)
_GPUS = re.compile(r"\s*\(\d+ GPUs?\)\s*$")
# Before the text: "rank 0:", "# rank_0", "output for rank 0: [1, 2]", "Print result in process 1:"
_LEADING = re.compile(
    r"^#?\s*(?:(?P<what>[\w. ]+?) (?:for|on|of) )?[Rr]ank[- _]?(?P<rank>\d+)\s*(?::|$|,)\s*(?P<text>.*)$"
)
_PROCESS = re.compile(r"#.*\b[Rr]un on process (\d+)")
_EITHER = re.compile(r"#.*\b(either|both|all)\b")


def ranks_of(text: str, steps: Sequence[Step]) -> int:
    """Return how many ranks an example of the document *text* needs: what it says, or the highest rank it shows; else 2."""
    stated = [_NUMBERS.get(found[0], 0) or int(found[0] or found[1]) for found in _COUNT.findall(text)]
    shown = [max(step.wanted.text) + 1 for step in steps if step.wanted is not None]
    return max([*stated[:1], *shown, *([] if stated else [2]), 1])


def is_shown(comment: str) -> bool:
    """Tell whether a *comment* after code shows what the code gives: for a rank, for a number of GPUs, or a value."""
    text = comment.lstrip("# ")
    if _GPUS.search(text) or _TRAILING.search(comment) or _IN_PARENTHESES.search(text):
        return True
    leading = _LEADING.match(text)
    return leading is not None and bool(leading["text"])


def by_rank(lines: Sequence[str]) -> dict[int, str]:
    """Return the text that *lines* show for each rank, under ``EVERY_RANK`` what is said of none in particular."""
    found: dict[int, list[str]] = {}
    current = [EVERY_RANK]
    unlabelled: list[str] = []
    for line in lines:
        trailing = _TRAILING.search(line)
        parentheses = _IN_PARENTHESES.search(line)
        leading = _LEADING.match(line.strip())
        if trailing:
            text = "\n".join([*unlabelled, line[: trailing.start()].rstrip()])
            unlabelled = []
            for rank in map(int, re.findall(r"\d+", trailing[1])):
                found.setdefault(rank, []).append(text)
        elif parentheses:
            found.setdefault(int(parentheses[1]), []).append(line[: parentheses.start()].strip())
        elif leading and not line.strip().startswith(("[", "(")):
            current = [int(leading["rank"])]
            if leading["text"]:
                found.setdefault(current[0], []).append(leading["text"])
        elif current == [EVERY_RANK]:
            unlabelled.append(_GPUS.sub("", line))
        else:
            found.setdefault(current[0], []).append(line)
    if unlabelled and any(line.strip() for line in unlabelled):
        found.setdefault(EVERY_RANK, []).extend(unlabelled)
    return {rank: "\n".join(texts).strip("\n") for rank, texts in found.items()}


def process_of(comment: str, before: frozenset[int] | None) -> frozenset[int] | None:
    """Return the ranks that a *comment* gives the code after it to, those of *before* where it says nothing."""
    process = _PROCESS.search(comment)
    if process:
        return frozenset([int(process[1]) - 1])
    return None if _EITHER.search(comment) else before
