"""Every row of the table, ported in every direction: the port computes what the program did, by the same calls."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import NOT_CALLED, PROGRAMS, VARIANTS, functions_of, written
from recorded_runs import Runs, assert_equal_calls

from shim.port import Plan, port_source
from shim.port.apis import APIS
from shim.port.correspondences.functions import COLLECTIVES, OBJECTS, POINT_TO_POINT
from shim.port.correspondences.table import forms_of

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
            for variant in range(len(VARIANTS)):
                text = written(program, source, variant)
                assert (text is None) == ((program, source) in WITHOUT)
                if text is not None:
                    found.setdefault((program, source, text), variant)
    return [(program, source, variant) for (program, source, _), variant in found.items()]


CASES = cases()
IDS = [f"{program}-{source}-{VARIANTS[variant]}" for program, source, variant in CASES]


def run(text: str, rank: int, size: int) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    return names["run"](rank, size)


@pytest.fixture
def texts(program: str, source: str, variant: int, record_property: Any) -> dict[str, str | None]:
    """The program in its API, on its frontend, and ported to each other one, None where a port has to leave something."""
    found: dict[str, str | None] = {source: written(program, source, variant)}
    for target in APIS:
        if target != source:
            ported = port_source(found[source] or "", Plan(source, target))
            kinds = [entry.kind for entry in ported.entries]
            assert ("left" in kinds) if (program, target) in WITHOUT else not kinds, target
            found[target] = None if kinds else ported.text
            if not kinds:
                record_property(
                    "ported", [f"{source}: {name} -> {target}" for name in functions_of(program, source, variant)]
                )
    return found


def test_each_function_with_an_equivalent_is_called(record_property: Any) -> None:
    called = {
        (source, name, target)
        for program, source, variant in CASES
        for name in functions_of(program, source, variant)
        for target in APIS
        if target != source and (program, target) not in WITHOUT
    }
    rows = (*COLLECTIVES, *POINT_TO_POINT, *OBJECTS)
    wanted = {
        (source, form.name, target)
        for row, source, target in product(rows, APIS, APIS)
        if source != target and forms_of(row, target)
        for form in forms_of(row, source)
    }
    exceptions = {pair for pair in wanted if pair[:2] in NOT_CALLED}
    assert wanted - called == exceptions
    assert len(exceptions) <= 0.05 * len(wanted)
    assert len(wanted) > 250
    record_property("exceptions of the port", [f"{source}: {name} -> {target}" for source, name, target in exceptions])


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch (2.13 renamed|deprecates):FutureWarning")
@pytest.mark.parametrize(("program", "source", "variant"), CASES, ids=IDS)
def test_the_port_computes_the_same(
    rank: int, world_size: int, program: str, source: str, texts: dict[str, str | None], tmp_path: Path
) -> None:
    compare(rank, world_size, program, source, texts, tmp_path)


@pytest.mark.nightly
@pytest.mark.ranks(3)
@pytest.mark.filterwarnings("ignore:torch (2.13 renamed|deprecates):FutureWarning")
@pytest.mark.parametrize(("program", "source", "variant"), CASES, ids=IDS)
def test_the_same_on_three_ranks(
    rank: int, world_size: int, program: str, source: str, texts: dict[str, str | None], tmp_path: Path
) -> None:
    compare(rank, world_size, program, source, texts, tmp_path)


def compare(rank: int, size: int, program: str, source: str, texts: dict[str, str | None], folder: Path) -> None:
    runs = Runs(str(folder), rank)
    with runs.recording() as calls:
        expected = run(texts[source] or "", rank, size)
    assert any(not call.shape.is_internal for call in calls[0].calls) or program == "is_initialized" or size > 2
    for target, text in texts.items():
        if text is not None and target != source:
            with runs.recording() as its_calls:
                found = run(text, rank, size)
            assert len(found) == len(expected), target
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, target)
            assert_equal_calls(calls[0], its_calls[0], target)
