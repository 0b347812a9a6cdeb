"""Every row of the table, ported in every direction: the port computes what the program did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import PROGRAMS, written

from shim.port import Plan, port_source
from shim.port.apis import APIS

# What has no equivalent, and why: all of these programs are left, with an entry.
WITHOUT = {
    ("gather_object", "paddle_2"): "Paddle has no gather_object",
    ("gather_object", "paddle_3"): "Paddle has no gather_object",
    ("send_objects", "paddle_2"): "Paddle 2 has no send_object_list",
}


def cases() -> list[tuple[str, str, int]]:
    """Each program in each API that has its functions, in each way to write it that is not like another."""
    found: dict[tuple[str, str, str], int] = {}
    for program in PROGRAMS:
        for source in APIS:
            for variant in (0, 1, 2):
                text = written(program, source, variant)
                assert (text is None) == ((program, source) in WITHOUT)
                if text is not None:
                    found.setdefault((program, source, text), variant)
    return [(program, source, variant) for (program, source, _), variant in found.items()]


CASES = cases()
IDS = [
    f"{program}-{source}-{('positions', 'keywords', 'other functions')[variant]}" for program, source, variant in CASES
]


def run(text: str, rank: int, size: int) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    return names["run"](rank, size)


@pytest.fixture
def texts(program: str, source: str, variant: int) -> dict[str, str | None]:
    """The program in its API and ported to each other one, None where a port has to leave something."""
    found: dict[str, str | None] = {source: written(program, source, variant)}
    for target in APIS:
        if target != source:
            ported = port_source(found[source] or "", Plan(source, target))
            kinds = [entry.kind for entry in ported.entries]
            assert ("left" in kinds) if (program, target) in WITHOUT else not kinds, target
            found[target] = None if kinds else ported.text
    return found


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch 2.13 renamed:FutureWarning")
@pytest.mark.parametrize(("program", "source", "variant"), CASES, ids=IDS)
def test_the_port_computes_the_same(rank: int, world_size: int, source: str, texts: dict[str, str | None]) -> None:
    compare(rank, world_size, source, texts)


@pytest.mark.nightly
@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch 2.13 renamed:FutureWarning")
@pytest.mark.parametrize(("program", "source", "variant"), CASES, ids=IDS)
def test_the_same_on_three_ranks(rank: int, world_size: int, source: str, texts: dict[str, str | None]) -> None:
    compare(rank, world_size, source, texts)


def compare(rank: int, size: int, source: str, texts: dict[str, str | None]) -> None:
    expected = run(texts[source] or "", rank, size)
    for target, text in texts.items():
        if text is not None and target != source:
            found = run(text, rank, size)
            assert len(found) == len(expected), target
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, target)
