"""The table of collectives against everything that has to have a row's worth."""

from __future__ import annotations

import inspect

import pytest

from shim.conformance import oracle
from shim.core import calls
from shim.core.collectives import COLLECTIVES, Collective
from shim.core.engines.base import Engine

ROWS = pytest.mark.parametrize("row", COLLECTIVES, ids=lambda row: row.name)


@ROWS
def test_has_a_call_an_engine_method_and_an_oracle(row: Collective) -> None:
    assert row.name in calls.__all__
    assert row.name in Engine.__abstractmethods__
    assert row.name in oracle.__all__


@ROWS
def test_calls_take_what_the_row_says(row: Collective) -> None:
    parameters = inspect.signature(getattr(calls, row.name)).parameters
    assert list(parameters)[:2] == ["caller", "group"]
    assert ("root" in parameters) == row.rooted
    assert ("op" in parameters) == row.reduces
    assert any(name.endswith("_splits") for name in parameters) == row.splits
    assert ("peer" in parameters) == row.point_to_point


def test_nothing_is_missing_from_the_table() -> None:
    names = {row.name for row in COLLECTIVES}
    assert len(names) == len(COLLECTIVES)
    assert names == set(calls.__all__) - {"received", "refuse", "refused", "tell"}
    assert names == Engine.__abstractmethods__ - {
        "refuse",
        "is_gone",
        "has_ended",
        "is_usable",
        "thresholds",
        "helper_threads",
        "close",
    }
