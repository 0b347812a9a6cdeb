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


def run(text: str, rank: int, size: int) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    return names["run"](rank, size)


@pytest.fixture
def texts(program: str, source: str, variant: int) -> dict[str, str | None] | None:
    """The program in its API and ported to each other one, None where a port has to leave something; nothing where the API cannot write it."""
    text = written(program, source, variant)
    assert (text is None) == ((program, source) in WITHOUT)
    if text is None:
        return None
    found: dict[str, str | None] = {source: text}
    for target in APIS:
        if target != source:
            ported = port_source(text, Plan(source, target))
            kinds = [entry.kind for entry in ported.entries]
            assert ("left" in kinds) if (program, target) in WITHOUT else not kinds, target
            found[target] = None if kinds else ported.text
    return found


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch 2.13 renamed:FutureWarning")
@pytest.mark.parametrize("variant", [0, 1, 2], ids=["positions", "keywords", "other functions"])
@pytest.mark.parametrize("source", APIS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_port_computes_the_same(
    rank: int, world_size: int, source: str, texts: dict[str, str | None] | None
) -> None:
    compare(rank, world_size, source, texts)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("variant", [0], ids=["positions"])
@pytest.mark.parametrize("source", APIS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_on_three_ranks(rank: int, world_size: int, source: str, texts: dict[str, str | None] | None) -> None:
    compare(rank, world_size, source, texts)


def compare(rank: int, size: int, source: str, texts: dict[str, str | None] | None) -> None:
    if texts is None:
        return
    expected = run(texts[source] or "", rank, size)
    for target, text in texts.items():
        if text is not None and target != source:
            found = run(text, rank, size)
            assert len(found) == len(expected), target
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, target)
