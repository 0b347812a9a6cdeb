"""How documents say of which ranks they speak."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shim.conformance.examples.example import EVERY_RANK

# At the end of a line: "# Rank 0", "# Rank 0 and 1", "(2 GPUs, out for rank 1)"
_TRAILING = re.compile(r"#\s*[Rr]anks?[- _]?(\d+(?:(?:\s*(?:,|and|&)\s*)\d+)*)\s*$")
_IN_PARENTHESES = re.compile(r"\s*\((?:\d+ GPUs?,?\s*)?(?:out|output)?\s*(?:for|on)?\s*rank[- _]?(\d+)\)\s*$", re.I)
_GPUS = re.compile(r"\s*\(\d+ GPUs?\)\s*$")
# Before the text: "rank 0:", "# rank_0", "#rank 0 and 4:", "output for rank 0: [1, 2]", "Process with rank 0: [1]"
_LEADING = re.compile(
    r"^#?\s*(?:(?P<what>[\w. ]+?) (?:for|on|of|with) )?[Rr]anks?[- _]?(?P<ranks>\d+(?:\s*(?:,|and|&)\s*\d+)*)"
    r"\s*(?::|$|,)\s*(?P<text>.*)$"
)
# "Other processes: [0.]": those of which nothing else is said
_OTHERS = re.compile(r"^#?\s*[Oo]ther \w+:\s*(?P<text>.*)$")
# On a line of its own: "# Print result in process 1:", whose numbers are no ranks
_OF_PROCESS = re.compile(r"^#.*\b(?:in|of|on) process \d+:$")
_PROCESS = re.compile(r"#.*\b[Rr]un on process (\d+)")
_ON_RANK = re.compile(r"#.*\b[Oo]n rank (\d+):?\s*$")
# After the text, and not of a rank: "[28]  # the sum of all"
_REMARK = re.compile(r"(?<=\S)\s{2,}#.*$")
_EITHER = re.compile(r"#.*\b(either|both|all)\b")


def is_shown(comment: str) -> bool:
    """Tell whether a *comment* after code shows what the code gives: for a rank, for a number of GPUs, or a value."""
    text = comment.lstrip("# ")
    if _GPUS.search(text) or _TRAILING.search(comment) or _IN_PARENTHESES.search(text):
        return True
    leading = _LEADING.match(text)
    return leading is not None and bool(leading["text"])


def is_label(line: str) -> bool:
    """Tell whether a *line* says of which rank it, or what follows it, is shown."""
    return any(pattern.search(line.strip()) for pattern in (_TRAILING, _LEADING, _OTHERS))


def resumes(line: str) -> bool:
    """Tell whether a comment on a *line* after a gap says that what follows it is shown by the code before."""
    stripped = line.strip()
    return bool(_OF_PROCESS.match(stripped)) or (stripped.startswith("#") and is_label(stripped))


def by_rank(lines: Sequence[str]) -> dict[int, str]:
    """Return the text that *lines* show for each rank, under ``EVERY_RANK`` what is said of none in particular, or of the others."""
    found: dict[int, list[str]] = {}
    current = [EVERY_RANK]
    unlabelled: list[str] = []
    for line in lines:
        trailing = _TRAILING.search(line)
        parentheses = _IN_PARENTHESES.search(line)
        leading = _leading(line)
        if trailing and (unlabelled or line[: trailing.start()].strip()):
            text = "\n".join([*unlabelled, line[: trailing.start()].rstrip()])
            unlabelled = []
            for rank in _numbers(trailing[1]):
                found.setdefault(rank, []).append(text)
        elif parentheses:
            found.setdefault(int(parentheses[1]), []).append(line[: parentheses.start()].strip())
        elif leading:
            current, text = leading
            for rank in current:
                found.setdefault(rank, []).extend([text] if text else [])
        elif current == [EVERY_RANK] and EVERY_RANK not in found:
            unlabelled.append(_REMARK.sub("", _GPUS.sub("", line)))
        else:
            for rank in current:
                found.setdefault(rank, []).append(line)
    if unlabelled and any(line.strip() for line in unlabelled):
        found.setdefault(EVERY_RANK, []).extend(unlabelled)
    return {rank: "\n".join(texts).strip("\n") for rank, texts in found.items()}


def _leading(line: str) -> tuple[list[int], str] | None:
    """Return the ranks that *line* begins to speak of, and what it shows of them itself."""
    leading = _LEADING.match(line.strip())
    if leading:
        return _numbers(leading["ranks"]), leading["text"]
    others = _OTHERS.match(line.strip())
    return ([EVERY_RANK], others["text"].removesuffix(".")) if others else None


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def rank_of(comment: str) -> int | None:
    """Return the rank of which a *comment* before code says that the output is shown: "For example, on rank 2:"."""
    found = _ON_RANK.match(comment.strip())
    return int(found[1]) if found else None


def process_of(comment: str, before: frozenset[int] | None) -> frozenset[int] | None:
    """Return the ranks that a *comment* gives the code after it to, those of *before* where it says nothing."""
    process = _PROCESS.search(comment)
    if process:
        return frozenset([int(process[1]) - 1])
    return None if _EITHER.search(comment) else before
