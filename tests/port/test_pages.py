"""The pages: the port of what stands on the left of an example is what stands on the right, and there is one for each direction."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shim.port import Plan, port_source
from shim.port.apis import APIS

DOCS = Path(__file__).parents[2] / "docs"
_NAMES = {"torch": "torch", "Paddle 2": "paddle_2", "Paddle 3": "paddle_3", "MindSpore": "mindspore"}
_HEADING = re.compile(r"^#+ (?:(?:From )?([\w ]+) to ([\w ]+)|(Code)|.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> Iterator[tuple[str, str, str, str]]:
    """Yield each example: from where, to where, before, after."""
    for page in ("porting.md", "porting_examples.md"):
        text = (DOCS / page).read_text()
        for heading in _HEADING.finditer(text):
            source, target = ("torch", "Paddle 3") if heading[3] else heading.groups()[:2]
            if source not in _NAMES or target not in _NAMES:
                continue
            section = text[heading.end() :].partition("\n#")[0]
            for block in _BLOCK.findall(section):
                left = re.match(r"\S.*?\S {3,}(?=\S)", block)
                if left is not None:
                    yield _NAMES[source], _NAMES[target], *halves(block, left.end())


def halves(block: str, column: int) -> tuple[str, str]:
    """Return what stands on the left and on the right of *column*, without the empty lines that keep them beside each other."""
    lines = block.splitlines()
    assert all(line[column - 3 : column].strip() == "" for line in lines), "the columns touch"
    sides = ([line[:column].rstrip() for line in lines], [line[column:] for line in lines])
    return tuple("".join(f"{line}\n" for line in side if line) for side in sides)  # type: ignore[return-value]


EXAMPLES = list(examples())


@pytest.mark.parametrize(
    ("source", "target", "before", "after"), EXAMPLES, ids=[f"{one}-{other}" for one, other, *_ in EXAMPLES]
)
def test_the_port_of_the_left_is_the_right(source: str, target: str, before: str, after: str) -> None:
    ported = port_source(before, Plan(source, target))
    assert "".join(f"{line}\n" for line in ported.text.splitlines() if line) == after
    assert not ported.entries


def test_there_is_an_example_for_each_direction() -> None:
    assert {(one, other) for one, other, *_ in EXAMPLES} == {*itertools.permutations(APIS, 2)}
