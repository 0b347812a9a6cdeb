"""How documents speak of ranks: of which ones they show what, and how many an example needs by what it says, what its code names, what it shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shim.conformance.examples.example import EVERY_RANK, Step

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


_DEFAULT = 2
# "2 devices", "2 process groups, 2 ranks", "world_size of 3", "(2 GPUs)", "Launch 2 processes", "two ranks"
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8}
_COUNT = re.compile(
    r"\b(\d+|two|three|four|eight) (?:\w+ )?(?:devices|ranks|GPUs|gpus|processes|cards|workers)\b|world_size of (\d+)|\b(one) card\b"
)
_SHOWN_SIZE = re.compile(r"_size is\s*:\s*(\d+)")
_SERVES_A_STORE = re.compile(r"Store\([^()]*is_master=True\)")
_WORLD = re.compile(r"\b(?:init\w*|rank)\b")


def ranks_of(own: str, document: str, steps: Sequence[Step]) -> int:
    """Return how many ranks the example needs whose text is *own*, in the text *document*.

    What the example says itself goes before what the document says around it. A rank that is shown, or that its code names, is there. An example that
    serves a store and speaks of no world is one process. Where nothing says anything, there are 2.
    """
    sources = [step.source for step in steps]
    if any(map(_SERVES_A_STORE.search, sources)) and not any(map(_WORLD.search, sources)):
        return 1
    stated = _stated(own) or _stated(document)
    shown = [text for step in steps if step.wanted is not None for text in step.wanted.text.values()]
    sizes = [int(size) for text in shown for size in _SHOWN_SIZE.findall(text)]
    ranks = [rank for step in steps if step.wanted is not None for rank in step.wanted.text]
    named = [rank for source in sources for rank in _named_ranks(source)]
    return max([stated or _DEFAULT if not sizes else 1, *sizes, *(rank + 1 for rank in [*ranks, *named])])


def _stated(text: str) -> int:
    found = _COUNT.search(text)
    if found is None:
        return 0
    number = found[1] or found[2] or found[3]
    return _NUMBERS.get(number, 0) or int(number)


def _named_ranks(source: str) -> Iterator[int]:
    """Give the ranks in (nested) lists of numbers that are called ranks, or that a group is made of."""
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Assign) and "rank" in ast.unparse(node.targets[0])) or (
            isinstance(node, ast.keyword) and "rank" in (node.arg or "")
        ):
            yield from _numbers_in(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_group"):
            for argument in node.args:
                yield from _numbers_in(argument)


def _numbers_in(node: ast.expr) -> Iterator[int]:
    if isinstance(node, (ast.List, ast.Tuple)):
        for entry in node.elts:
            if isinstance(entry, ast.Constant) and type(entry.value) is int:
                yield entry.value
            yield from _numbers_in(entry)
