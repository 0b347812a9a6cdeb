"""The oracle against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shim.conformance import oracle
from shim.conformance.assertions import assert_same_array, assert_same_arrays
from shim.core.collectives import COLLECTIVES
from shim.core.reduce_ops import ReduceOp


def ints(*values):
    return np.array(values, dtype="int64")


@pytest.mark.parametrize("row", COLLECTIVES, ids=lambda row: row.name)
def test_every_collective_has_an_oracle(row):
    assert callable(getattr(oracle, row.name))


@pytest.mark.parametrize("op", ReduceOp, ids=lambda op: op.name)
def test_every_reduce_op_has_an_oracle(op):
    factors = [1.0, 1.0] if op is ReduceOp.PREMUL_SUM else None
    dtype = "int32" if op.name.startswith("B") else "float32"
    seen = oracle.reduce_elements([np.array([3], dtype), np.array([3], dtype)], op.name, factors)
    assert seen.dtype == dtype
    assert seen.shape == (1,)


def test_broadcast():
    assert_same_arrays(oracle.broadcast([ints(0), ints(1, 2), ints(3)], root=1), [ints(1, 2)] * 3)


def test_all_reduce():
    assert_same_arrays(oracle.all_reduce([ints(1, 2), ints(10, 20), ints(100, 200)], "SUM"), [ints(111, 222)] * 3)


def test_reduce_leaves_other_ranks_alone():
    first, second, third = oracle.reduce([ints(1), ints(2), ints(3)], "PRODUCT", root=2)
    assert first is None
    assert second is None
    assert_same_array(third, ints(6))


def test_all_gather_of_unequal_parts():
    seen = oracle.all_gather([ints(0), ints(1, 1), ints()])
    assert len(seen) == 3
    for parts in seen:
        assert_same_arrays(parts, [ints(0), ints(1, 1), ints()])


def test_gather_leaves_other_ranks_alone():
    first, second = oracle.gather([ints(0), ints(1, 1)], root=0)
    assert_same_arrays(first, [ints(0), ints(1, 1)])
    assert second is None


def test_scatter_reads_the_root_alone():
    assert_same_arrays(oracle.scatter([None, [ints(1), ints(2, 3)]], root=1), [ints(1), ints(2, 3)])
    with pytest.raises(ValueError, match="2 parts"):
        oracle.scatter([[ints(1)], None], root=0)


def test_reduce_scatter_of_unequal_parts():
    seen = oracle.reduce_scatter([[ints(1), ints(2, 3)], [ints(10), ints(20, 30)]], "SUM")
    assert_same_arrays(seen, [ints(11), ints(22, 33)])


def test_all_to_all_of_unequal_parts():
    first, second = oracle.all_to_all([[ints(0), ints(1, 1)], [ints(10, 10, 10), ints()]])
    assert_same_arrays(first, [ints(0), ints(10, 10, 10)])
    assert_same_arrays(second, [ints(1, 1), ints()])


def test_barrier():
    assert oracle.barrier([1.0, 3.0, 2.0]) == [3.0, 3.0, 3.0]


def test_send_keeps_the_order_of_each_sender():
    waiting = oracle.send([[(1, 0, ints(1)), (1, 0, ints(2))], [(0, 7, ints(3))]])
    assert [(sender, tag, content.tolist()) for sender, tag, content in waiting[1]] == [(0, 0, [1]), (0, 0, [2])]
    assert [(sender, tag, content.tolist()) for sender, tag, content in waiting[0]] == [(1, 7, [3])]


def test_receive_matches_sender_and_tag():
    sent = [[(2, 5, ints(1)), (2, 6, ints(2))], [(2, 7, ints(3))], []]
    seen = oracle.receive(sent, [[], [], [(0, 6), (None, 7), (0, 5)]])
    assert_same_arrays(seen[2], [ints(2), ints(3), ints(1)])
    assert seen[0] == seen[1] == []


def test_receive_tells_what_cannot_be_received():
    with pytest.raises(LookupError, match="tag 1"):
        oracle.receive([[(1, 0, ints(1))], []], [[], [(0, 1)]])
    with pytest.raises(ValueError, match="not determined"):
        oracle.receive([[(2, 0, ints(1))], [(2, 0, ints(2))], []], [[], [], [(None, 0)]])


def test_nothing_is_shared_with_the_inputs():
    inputs = [ints(1, 2), ints(3, 4)]
    outputs = [*oracle.broadcast(inputs, 0), *oracle.all_gather(inputs)[0], *oracle.cut(inputs[0], 2)]
    for output in outputs:
        assert not any(np.shares_memory(output, given) for given in inputs)


def test_cut_and_joined():
    table = np.arange(10).reshape(5, 2)
    assert_same_arrays(oracle.cut(table, [2, 0, 3]), [table[:2], table[:0], table[2:]])
    assert_same_array(oracle.joined(oracle.cut(table, [2, 0, 3])), table)
    assert_same_arrays(oracle.cut(table[:4], 2), [table[:2], table[2:4]])
    with pytest.raises(ValueError, match="equal parts"):
        oracle.cut(table, 2)
    with pytest.raises(ValueError, match="make up"):
        oracle.cut(table, [1, 1])


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("SUM", [0, 1, 1, 1]),
        ("MAX", [0, 1, 1, 1]),
        ("BOR", [0, 1, 1, 1]),
        ("PRODUCT", [0, 0, 0, 1]),
        ("MIN", [0, 0, 0, 1]),
        ("BAND", [0, 0, 0, 1]),
        ("BXOR", [0, 1, 1, 0]),
    ],
)
def test_bool(op, expected):
    left, right = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert_same_array(oracle.reduce_elements([left, right], op), np.array(expected, bool))


@pytest.mark.parametrize(
    ("op", "expected"),
    [("SUM", 44), ("PRODUCT", 32), ("MIN", 100), ("MAX", 200), ("BAND", 64), ("BOR", 236), ("BXOR", 172)],
)
def test_integers_wrap_around(op, expected):
    assert_same_array(
        oracle.reduce_elements([np.array([100], "uint8"), np.array([200], "uint8")], op), np.array([expected], "uint8")
    )


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("AVG", "int32"),
        ("AVG", "bool"),
        ("PREMUL_SUM", "int64"),
        ("MIN", "complex64"),
        ("MAX", "complex128"),
        ("BAND", "float32"),
        ("BOR", "complex64"),
        ("BXOR", "float16"),
    ],
)
def test_ops_that_a_dtype_does_not_have(op, dtype):
    factors = [1.0] if op == "PREMUL_SUM" else None
    with pytest.raises(ValueError, match="not defined"):
        oracle.reduce_elements([np.ones(1, dtype)], op, factors)


def test_op_names_and_factors_are_checked():
    one = np.ones(1, "float32")
    with pytest.raises(ValueError, match="no reduce op"):
        oracle.reduce_elements([one], "sum")
    with pytest.raises(ValueError, match="factors"):
        oracle.reduce_elements([one], "SUM", [1.0])
    with pytest.raises(ValueError, match="factors"):
        oracle.reduce_elements([one], "PREMUL_SUM")
    with pytest.raises(ValueError, match="1 for 2 ranks"):
        oracle.reduce_elements([one, one], "PREMUL_SUM", [1.0])


def test_float16_is_summed_in_float32_and_rounded_once():
    # In float16 2048 + 1 is 2048 again and again; the exact sum is 2052.
    terms = [np.array([2048], "float16"), *(np.array([1], "float16") for _ in range(4))]
    assert_same_array(oracle.reduce_elements(terms, "SUM"), np.array([2052], "float16"))
    assert_same_array(oracle.reduce_elements(terms, "AVG"), np.array([410.4], "float16"))


def test_float32_is_summed_in_rank_order():
    terms = [np.array([value], "float32") for value in (1e8, 1.0, -1e8)]
    assert_same_array(oracle.reduce_elements(terms, "SUM"), np.array([0.0], "float32"))
    assert_same_array(oracle.reduce_elements([terms[0], terms[2], terms[1]], "SUM"), np.array([1.0], "float32"))


def test_bfloat16_rounds_to_nearest_even():
    given = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, np.inf, np.nan, -0.0, 3.4e38], "float32")
    expected = np.array([1.0, 1.0, 1 + 2**-6, 1 + 2**-7, np.inf, np.nan, -0.0, np.inf], "float32")
    assert_same_array(oracle.bfloat16(given), expected)
    assert np.signbit(oracle.bfloat16(given)[6])


def test_bfloat16_is_summed_in_float32_and_rounded_once():
    terms = [np.array([256], "float32"), *(np.array([1], "float32") for _ in range(4))]
    seen = oracle.reduce_elements(terms, "SUM", rounding=oracle.bfloat16)
    assert_same_array(seen, np.array([260], "float32"))


def test_complex_is_combined_by_parts():
    left, right = np.array([1 + 2j], "complex64"), np.array([3 - 1j], "complex64")
    assert_same_array(oracle.reduce_elements([left, right], "SUM"), np.array([4 + 1j], "complex64"))
    assert_same_array(oracle.reduce_elements([left, right], "PRODUCT"), np.array([5 + 5j], "complex64"))
    assert_same_array(oracle.reduce_elements([left, right], "AVG"), np.array([2 + 0.5j], "complex64"))
    premultiplied = oracle.reduce_elements([left, right], "PREMUL_SUM", [2.0, 0.5])
    assert_same_array(premultiplied, np.array([3.5 + 3.5j], "complex64"))


def test_premul_sum_multiplies_in_the_accumulator():
    # The product of the first rank is no float16; only the sum is rounded.
    terms = [np.array([1 + 2**-10], "float16"), np.array([-1], "float16")]
    seen = oracle.reduce_elements(terms, "PREMUL_SUM", [1 + 2**-10, 1.0])
    assert_same_array(seen, np.array([2**-9 + 2**-20], "float16"))


@pytest.mark.parametrize(("op", "expected"), [("MIN", [1, -0.0]), ("MAX", [2, -0.0])])
def test_a_nan_wins_and_the_first_of_two_equals_stays(op, expected):
    nan = np.nan
    terms = [np.array([1, -0.0, nan, 1], "float32"), np.array([2, 0.0, 1, nan], "float32")]
    seen = oracle.reduce_elements(terms, op)
    assert_same_array(seen, np.array([*expected, nan, nan], "float32"))
    assert np.signbit(seen[1])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
@pytest.mark.parametrize("op", ["SUM", "MIN", "PRODUCT", "AVG"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_shapes_are_kept(shape, op, dtype):
    seen = oracle.reduce_elements([np.ones(shape, dtype)] * 3, op)
    assert seen.shape == shape
    assert seen.dtype == dtype
