"""Cases of a user's own: plain Python programs, which say in comments how many ranks run them and what these show.

    # ranks: 2, 4
    import torch
    import torch.distributed as dist

    dist.init_process_group()
    tensor = torch.ones(2) * dist.get_rank()
    dist.broadcast(tensor, 1)
    print(tensor)
    # shows: tensor([1., 1.])
    print(dist.get_rank())
    # shows on rank 0: 0
    # shows on rank 1: 1
    dist.broadcast(tensor, 9)  # raises

What is printed since the last ``shows`` is compared, as with the frameworks' own examples; a text that goes on over several
lines has ``#`` and four spaces in front of each. A statement with ``# raises`` on its last line must raise on every rank. The program runs as it is
on the real framework too, with ``torchrun`` or the like.
"""

from __future__ import annotations

import ast
import re

from shim.conformance.examples.example import EVERY_RANK, Example, Step, Wanted

__all__ = ["examples_of_case", "is_case"]

_RANKS = re.compile(r"^#\s*ranks:\s*(\d+(?:\s*,\s*\d+)*)\s*$", re.MULTILINE)
_SHOWS = re.compile(r"^#\s*shows(?:\s+on\s+rank\s+(?P<rank>\d+))?:\s?(?P<text>.*)$")
_MORE = re.compile(r"^#\s{4}(?P<text>.*)$")
_RAISES = re.compile(r"#\s*raises\s*$")


def is_case(text: str) -> bool:
    """Tell whether the Python file *text* is a case: its first comment says for how many ranks."""
    for line in text.splitlines():
        if line.strip():
            return bool(_RANKS.match(line)) if line.startswith("#") and not line.startswith("#!") else False
    return False


def examples_of_case(text: str, framework: str, name: str) -> list[Example]:
    """Return the case *text*, once for each number of ranks that it names. Raises SyntaxError for what is no Python."""
    stated = _RANKS.search(text)
    assert stated is not None
    lines = text.splitlines()
    body = ast.parse(text, name).body
    steps = [
        _step(node, following.lineno if following else len(lines) + 1, lines)
        for node, following in zip(body, [*body[1:], None], strict=True)
    ]
    return [
        Example(framework, name, number, text, name, tuple(steps), int(ranks))
        for number, ranks in enumerate(stated[1].split(","), start=1)
    ]


def _step(node: ast.stmt, until: int, lines: list[str]) -> Step:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    last = node.end_lineno or node.lineno
    source = "\n".join(lines[first - 1 : last])
    return Step(
        source, first, 0, _wanted(lines[last : until - 1], last + 1), None, bool(_RAISES.search(lines[last - 1]))
    )


def _wanted(comments: list[str], line: int) -> Wanted | None:
    texts: dict[int, list[str]] = {}
    current: list[str] | None = None
    for comment in comments:
        shows, more = _SHOWS.match(comment.strip()), _MORE.match(comment.strip())
        if shows:
            rank = EVERY_RANK if shows["rank"] is None else int(shows["rank"])
            current = texts.setdefault(rank, [])
            current.append(shows["text"])
        elif more and current is not None:
            current.append(more["text"])
    return Wanted({rank: "\n".join(text) for rank, text in texts.items()}, line) if texts else None
