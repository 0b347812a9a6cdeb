"""The table of collectives against everything that has to have a row's worth."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from shim.conformance import oracle
from shim.core import calls
from shim.core.collectives import COLLECTIVES, Collective
from shim.core.engines.base import Engine
from shim.core.engines.defaults import DefaultMoves
from shim.core.engines.shared_memory import SharedMemoryEngine

ROWS = pytest.mark.parametrize("row", COLLECTIVES, ids=lambda row: row.name)


def functions_of(module: ModuleType) -> set[str]:
    functions = inspect.getmembers(module, inspect.isfunction)
    return {name for name, each in functions if each.__module__ == module.__name__ and not name.startswith("_")}


@ROWS
def test_has_a_call_an_engine_method_and_an_oracle(row: Collective) -> None:
    assert row.name in functions_of(calls)
    assert callable(getattr(Engine, row.name))
    assert row.point_to_point == (row.name in Engine.__abstractmethods__)  # the others have defaults
    assert row.name in functions_of(oracle)


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
    assert names == functions_of(calls) - {"received", "refuse", "refused", "tell"}
    assert {name for name in names if name in Engine.__abstractmethods__} == {"send", "receive"}
    moves = {name.removeprefix("move_") for name in vars(DefaultMoves) if name.startswith("move_")}
    assert moves == names - {"send", "receive"}


def test_the_native_engine_has_all_that_an_engine_has() -> None:
    """It cannot inherit it, and is only registered as one."""
    assert issubclass(SharedMemoryEngine, Engine)
    asked = {name for name in dir(Engine) if callable(getattr(Engine, name)) and not name.startswith(("_", "move_"))}
    assert len(asked) > len(COLLECTIVES)
    assert [name for name in sorted(asked) if not hasattr(SharedMemoryEngine, name)] == []
