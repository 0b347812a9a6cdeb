"""Every reduce op that is defined for a dtype, of elements from all over its range, agrees with the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from core_world import world

from shim.conformance import oracle
from shim.conformance.assertions import assert_same_array
from shim.conformance.soak.draw import Kind, combined, elements, kinds
from shim.core import calls
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp

ME = Caller("test")


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind.ops], ids=lambda kind: kind.name)
def test_every_op_of_every_dtype(rank: int, world_size: int, kind: Kind) -> None:
    with world() as group:
        # numpy and the engine see differently what a product of infinite complex numbers is
        special = kind.dtype.kind != "c"
        inputs = [elements(kind, 10_000 * other, 5_000, special) for other in range(world_size)]
        for op in kind.ops:
            factors = [0.5 + other for other in range(world_size)] if op == "PREMUL_SUM" else None
            output = inputs[rank].copy()
            factor = factors[rank] if factors else 1.0
            calls.all_reduce(ME, group, output, inputs[rank], ReduceOp[op], factor, now=True)
            assert_same_array(output, combined(kind, inputs, op, factors))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("op", ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"])
def test_any_byte_but_zero_is_true(rank: int, op: str) -> None:
    with world() as group:
        octets = [np.array(each, np.uint8) for each in ([0, 0, 1, 2, 2, 255], [0, 4, 2, 0, 2, 1])]
        output = np.zeros(6, bool)
        calls.all_reduce(ME, group, output, octets[rank].view(bool), ReduceOp[op], now=True)
        expected = oracle.reduce_elements([each != 0 for each in octets], op)
        assert_same_array(output.view(np.uint8), expected.view(np.uint8))
