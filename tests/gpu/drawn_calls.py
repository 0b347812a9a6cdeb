"""Drawn calls of every collective with tensors on a device, in all dtypes and forms that the engine serves, against the oracle.

The calls are those of ``shim conformance soak``. Nothing here needs pytest.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from shim.conformance.soak import operations
from shim.conformance.soak.draw import KINDS, Draw, Kind, elements
from shim.conformance.soak.operations import COMPUTING, ME, OPERATIONS, Operation
from shim.core import groups
from shim.core.groups import ProcessGroup

_MOST_BYTES = 64 << 10  # of a rank's part
_ADDED = ("SUM", "AVG", "PREMUL_SUM")
_ORDERED = ("SUM", "PRODUCT", "MIN", "MAX")
# By the beginning of a dtype's name. What is not here is only moved.
_REDUCTIONS = {
    "bool": (*_ORDERED, "BAND", "BOR"),
    "int": _ORDERED,
    "uint": _ORDERED,
    "float": (*_ADDED, "PRODUCT", "MIN", "MAX"),
    "bfloat": (*_ADDED, "PRODUCT", "MIN", "MAX"),
    "complex": _ADDED,
}
_NOT_REDUCED = ("int16", "uint16", "float8_e4m3fn", "float8_e5m2")
_ERRORS = {"float16": 2e-3, "bfloat16": 2e-2}  # relative, of sums that may be made in another order


class _Placed(NamedTuple):
    """What an operation asks of a place: the tensor there."""

    tensor: Any


class _FiniteDraw(Draw):
    """Draws neither NaN nor infinities, of which NCCL does not say what it makes of them."""

    def array(self, kind: Kind, count: int) -> Any:
        return elements(kind, self.below(1 << 30), count, False)


def name_of(operation: Operation) -> str:
    """Return what the table calls *operation*, or messages."""
    return operation.__name__.strip("_")


NAMES = tuple(map(name_of, OPERATIONS))


def carry_out(
    name: str,
    make: Callable[[Any], Any],
    values: Callable[[Any], Any],
    without: tuple[str, ...],
    backend: str,
    engine: str,
    calls: int,
) -> int:
    """Enter the world, make *calls* of the operation called *name*, check that *engine* has served them, and leave.

    Returns how many there were. See ``agrees_with_the_oracle``.
    """
    group = groups.enter_world(ME, "test", backend=backend)
    try:
        agrees_with_the_oracle(group, OPERATIONS[NAMES.index(name)], make, values, without, calls=calls)
        if name not in ("barrier", "messages"):
            served = group.engines_of_devices()["cuda"]
            assert served.startswith(f"engine {engine}"), f"engine {engine} was expected, and there is {served}"
    finally:
        groups.leave_world("test")
    return calls


def agrees_with_the_oracle(
    group: ProcessGroup,
    operation: Operation,
    make: Callable[[Any], Any],
    values: Callable[[Any], Any],
    without: tuple[str, ...] = (),
    unreduced: tuple[str, ...] = (),
    calls: int = 30,
) -> None:
    """Carry out *operation* with tensors that *make* makes of arrays, whose *values* are compared; dtypes *without* which are left out.

    Those that are *unreduced* are moved alone.
    """
    is_reduced = operation in COMPUTING
    left_out = without + (unreduced if is_reduced else ())
    kinds = [kind for kind in _kinds(is_reduced) if kind.name not in left_out]
    with mock.patch.object(operations, "place", lambda _draw, array: _Placed(make(array))):
        for number in range(calls):
            draw = _FiniteDraw(f"{operation.__name__}/{number}", group.size, most=_MOST_BYTES)
            kind = draw.one(kinds)
            made = operation(draw, group, kind, draw.count(kind), draw.is_rare(2))
            for work in made.works:
                work.wait()
            for placed, expected in made.outcomes:
                _assert_alike(values(placed.tensor), expected, kind, f"call {number}, {kind.name}")


def _kinds(is_reduced: bool) -> list[Kind]:
    there = [kind for kind in KINDS if not kind.extension or importlib.util.find_spec(kind.extension)]
    if not is_reduced:
        return there
    return [
        Kind(kind.name, _REDUCTIONS[kind.name.rstrip("0123456789")], kind.extension)
        for kind in there
        if kind.name not in _NOT_REDUCED
    ]


def _assert_alike(seen: Any, expected: Any, kind: Kind, what: str) -> None:
    if kind.dtype.kind in "biu":
        np.testing.assert_array_equal(seen, expected, what)
        return
    wide = np.complex128 if kind.dtype.kind == "c" else np.float64
    error = _ERRORS.get(kind.name, 1e-5)
    np.testing.assert_allclose(seen.astype(wide), expected.astype(wide), error, 4 * error, err_msg=what)
