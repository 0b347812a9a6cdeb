"""Random calls of every collective with tensors on devices: all dtypes, ops and forms that NCCL serves, compared with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from shim.conformance.soak import operations
from shim.conformance.soak.draw import KINDS, Draw, Kind, elements
from shim.conformance.soak.operations import COMPUTING, Operation
from shim.core.groups import ProcessGroup

_SUMS = ("SUM", "AVG", "PREMUL_SUM")
_INTEGER = ("SUM", "PRODUCT", "MIN", "MAX")
_REDUCED = (
    Kind("bool", (*_INTEGER, "BAND", "BOR")),
    *(Kind(f"{sign}int{bits}", _INTEGER) for sign in ("", "u") for bits in ("8", "32", "64")),
    *(Kind(f"float{bits}", (*_SUMS, "PRODUCT", "MIN", "MAX")) for bits in ("16", "32", "64")),
    Kind("bfloat16", (*_SUMS, "PRODUCT", "MIN", "MAX"), "ml_dtypes"),
    *(Kind(f"complex{bits}", _SUMS) for bits in ("64", "128")),
)
_CALLS = 30


class _Placed(NamedTuple):
    """See ``placing.Placed``."""

    tensor: Any


class _OrdinaryNumbers(Draw):
    """Draws no NaN and no infinities, of which NCCL does not say what it makes of them."""

    def array(self, kind: Kind, count: int) -> Any:
        return elements(kind, self.below(1 << 30), count, False)


def name_of(operation: Operation) -> str:
    """Return what the table calls *operation*, or messages."""
    return operation.__name__.strip("_")


def agrees_with_the_oracle(
    group: ProcessGroup,
    operation: Operation,
    make: Callable[[Any], Any],
    values: Callable[[Any], Any],
    without: tuple[str, ...] = (),
    unreduced: tuple[str, ...] = (),
) -> None:
    """Carry out *operation* with tensors that *make* makes of arrays, whose *values* are compared; dtypes *without* which are left out.

    Those that are *unreduced* are moved alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "place", lambda _draw, array: _Placed(make(array)))
        left_out = without + (unreduced if operation in COMPUTING else ())
        kinds = [kind for kind in (_REDUCED if operation in COMPUTING else KINDS) if kind.name not in left_out]
        for number in range(_CALLS):
            draw = _OrdinaryNumbers(f"{operation.__name__}/{number}", group.size, most=64 << 10)
            kind = draw.one(kinds)
            made = operation(draw, group, kind, draw.count(kind), draw.is_rare(2))
            for work in made.works:
                work.wait()
            for placed, expected in made.outcomes:
                _assert_alike(values(placed.tensor), expected, kind, f"call {number}, {kind.name}")


def _assert_alike(seen: Any, expected: Any, kind: Kind, what: str) -> None:
    """Sums of floats may be made in another order, and in a wider type."""
    if kind.dtype.kind in "biu":
        np.testing.assert_array_equal(seen, expected, what)
        return
    wide = np.complex128 if kind.dtype.kind == "c" else np.float64
    error = {"float16": 2e-3, "bfloat16": 2e-2}.get(kind.name, 1e-5)
    np.testing.assert_allclose(seen.astype(wide), expected.astype(wide), error, error * 4, err_msg=what)
