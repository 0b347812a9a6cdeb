"""Every collective of the table with random tensors on fake devices: all dtypes, ops and forms that NCCL serves, against the oracle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_device import FakeTensor, load

from shim.conformance.soak import operations
from shim.conformance.soak.draw import Draw
from shim.conformance.soak.elements import KINDS, Kind, elements
from shim.conformance.soak.operations import COMPUTING, ME, OPERATIONS, Operation
from shim.core import groups
from shim.core.collectives import COLLECTIVES

_SUMS = ("SUM", "AVG", "PREMUL_SUM")
_INTEGER = ("SUM", "PRODUCT", "MIN", "MAX")
REDUCED = (
    Kind("bool", (*_INTEGER, "BAND", "BOR")),
    *(Kind(f"{sign}int{bits}", _INTEGER) for sign in ("", "u") for bits in ("8", "32", "64")),
    *(Kind(f"float{bits}", (*_SUMS, "PRODUCT", "MIN", "MAX")) for bits in ("16", "32", "64")),
    Kind("bfloat16", (*_SUMS, "PRODUCT", "MIN", "MAX"), "ml_dtypes"),
    *(Kind(f"complex{bits}", _SUMS) for bits in ("64", "128")),
)
MOVED = [kind for kind in KINDS if not kind.name.startswith("float8")]  # of which there are no fake tensors
CALLS = 30


class Placed(NamedTuple):
    """See ``placing.Placed``."""

    tensor: FakeTensor


class OrdinaryNumbers(Draw):
    """Draws no NaN and no infinities, of which NCCL does not say what it makes of them."""

    def array(self, kind: Kind, count: int) -> Any:
        return elements(kind, self.below(1 << 30), count, False)


def test_the_operations_are_the_whole_table() -> None:
    drawn = {operation.__name__.strip("_") for operation in OPERATIONS}
    assert drawn == {row.name for row in COLLECTIVES if not row.point_to_point} | {"messages"}


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__.strip("_"))
def test_agrees_with_the_oracle(
    rank: int, world_size: int, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    load()
    monkeypatch.setattr(operations, "place", lambda _draw, array: Placed(FakeTensor(array, rank)))
    group = groups.enter_world(ME, "test")
    try:
        for number in range(CALLS):
            draw = OrdinaryNumbers(f"{operation.__name__}/{number}", world_size, most=64 << 10)
            kind = draw.one(REDUCED if operation in COMPUTING else MOVED)
            made = operation(draw, group, kind, draw.count(kind), draw.is_rare(2))
            for work in made.works:
                work.wait()
            for placed, expected in made.outcomes:
                assert_alike(placed.tensor.values(), expected, kind, f"call {number}")
    finally:
        groups.leave_world("test")


def assert_alike(seen: Any, expected: Any, kind: Kind, what: str) -> None:
    """Sums of floats may be made in another order, and in a wider type."""
    if kind.dtype.kind in "biu":
        np.testing.assert_array_equal(seen, expected, what)
        return
    wide = np.complex128 if kind.dtype.kind == "c" else np.float64
    error = {"float16": 2e-3, "bfloat16": 2e-2}.get(kind.name, 1e-5)
    np.testing.assert_allclose(seen.astype(wide), expected.astype(wide), error, error * 4, err_msg=what)
