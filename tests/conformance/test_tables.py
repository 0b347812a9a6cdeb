"""``shim conformance --tables``: every cell is carried out and checked, and one that is wrong is seen to be."""

from __future__ import annotations

import collections
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import shim.frontends.torch.distributed as dist
from shim.conformance import oracle
from shim.conformance.kinds import KINDS, Selection, kind_for
from shim.conformance.runner import see
from shim.conformance.tables import checks
from shim.conformance.tables.cells import ABSENT, DTYPES, OPERATIONS, Cell, Column, planned, run_cells
from shim.conformance.tables.checks import (
    ALL_DTYPES,
    Check,
    assert_as_expected,
    combined,
    everyone,
    exchange,
    numbers,
    reduce_ops_of,
    refusal,
    waited,
)
from shim.conformance.tables.columns import CELLS
from shim.errors import ArgumentError

ONLY_NUMPY = Selection(present=("numpy",), missing=(), absent=())
APIS = ["torch", "paddle", "mint", "comm_func", "primitives"]
TORCH = Column("torch", "as recorded", "numpy", dist.init_process_group)


def cell_of(call, row="all_reduce", **more):
    return Cell("operations", row, TORCH, "as recorded", call, **more)


def test_every_row_and_column_has_one_cell():
    places = [(cell.table, cell.row, cell.column.name) for cell in CELLS]
    of_dtypes = ["torch", "paddle", "mint.all_reduce", "mint.all_gather", "AllReduce", "AllGather", "Broadcast"]
    expected = [("operations", row, api) for row in OPERATIONS.rows for api in APIS]
    expected += [("dtypes", row, column) for row in DTYPES.rows for column in of_dtypes]
    assert collections.Counter(places) == collections.Counter(expected)
    assert all(cell.real for cell in CELLS)


def test_cells_are_absent_where_the_framework_has_no_such_function():
    absent = {(cell.row, cell.column.name) for cell in CELLS if cell.call is None}
    assert absent == {
        *(("stream, calc stream", api) for api in APIS if api != "paddle"),
        *((row, api) for row in ("all_gather (list)", "all_gather_object") for api in ("comm_func", "primitives")),
        *(("other object collectives", api) for api in ("comm_func", "primitives")),
        ("init_process_group", "primitives"),
    }
    assert all(cell.real == ABSENT for cell in CELLS if cell.call is None)


def test_only_float8_says_anything_but_yes():
    assert {cell.row for cell in CELLS if cell.says != "yes"} == {DTYPES.rows[-1]}


def test_the_rows_name_every_dtype():
    assert sorted(", ".join(DTYPES.rows).split(", ")) == sorted(ALL_DTYPES)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_cells_can_be_sent_to_ranks(cell):
    again = pickle.loads(pickle.dumps(cell))  # a bound method or a partial equals itself alone
    assert (again.name, again.dtypes, again.call is None) == (cell.name, cell.dtypes, cell.call is None)


# In a process of its own, because frameworks do not all bear being imported into one.
ROUND_TRIPS = """
import json, sys
import numpy as np
from shim.conformance.assertions import assert_same_array
from shim.conformance.kinds import kind_for, kind_named
from shim.conformance.tables.checks import ALL_DTYPES, numbers
name = sys.argv[1]
tensors = kind_named(name)
carried = [dtype for dtype in ALL_DTYPES if kind_for(name, [dtype], [name]) == name]
for dtype in carried:
    for shape in ((), (0,), (2, 3)):
        array = numbers(1, shape, dtype)
        tensor = tensors.make(array)
        assert_same_array(tensors.read(tensor), array)
        blank = tensors.read(tensors.blank(shape, dtype))
        assert (blank.dtype, blank.shape) == (array.dtype, array.shape)
        assert tensors.make(array) is not tensor
    assert str(tensors.dtype(dtype)).lower().replace("float8e", "float8_e").endswith(dtype)
try:
    tensors.read([1.0])
except TypeError as error:
    print(error, file=sys.stderr)
print(json.dumps(carried))
"""


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_makes_and_reads_every_dtype(name):
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ROUND_TRIPS, name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    lacks = {
        "numpy": ("bfloat16", "float8_e4m3fn", "float8_e5m2"),
        "paddle": ("uint16", "uint32", "uint64"),
    }.get(name, ())
    assert json.loads(child.stdout.splitlines()[-1]) == [dtype for dtype in ALL_DTYPES if dtype not in lacks]
    assert f"a tensor of {name} was expected" in child.stderr


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_numbers_differ_by_rank_and_position(dtype):
    arrays = everyone(2 if dtype == "bool" else 4, (2, 3), dtype)
    if dtype == "bool":
        assert {(bool(left), bool(right)) for left, right in zip(*(one.flat for one in arrays), strict=True)} == {
            *((left, right) for left in (False, True) for right in (False, True))
        }
    else:
        assert len({element.tobytes() for array in arrays for element in array.reshape(-1)}) == 24
    assert all(array.shape == (2, 3) for array in arrays)
    if "MAX" in reduce_ops_of(dtype):
        for op in ("MIN", "MAX"):
            assert all(combined(arrays, op).tobytes() != array.tobytes() for array in arrays)


def test_bfloat16_is_rounded_once():
    values = [
        np.array([256.0, 1.0], "float32"),
        np.array([1.0, 2.0**-9], "float32"),
        np.array([1.0, 2.0**-9], "float32"),
    ]
    encoded = [checks._to_bfloat16(value) for value in values]
    assert encoded[0].dtype.names == ("bfloat16",)
    assert (
        combined(encoded, "SUM")["bfloat16"].tolist()
        == checks._to_bfloat16(np.array([258.0, 1.0], "float32"))["bfloat16"].tolist()
    )


def test_unequal_parts_have_different_numbers_of_rows_and_fit():
    sent, received = zip(*(exchange(rank, 3, "unequal") for rank in range(3)), strict=True)
    assert [[len(part) for part in parts] for parts in sent] == [[0, 2, 4], [1, 3, 5], [2, 4, 6]]
    assert [[len(part) for part in parts] for parts in received] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


@pytest.mark.parametrize(
    ("preferred", "dtypes", "allowed", "kind"),
    [
        ("torch", ["float32"], KINDS, "torch"),
        ("paddle", ["uint16"], KINDS, "numpy"),
        ("paddle", ["uint16", "uint32"], ["paddle", "torch"], "torch"),
        ("mindspore", ["bfloat16"], ["numpy", "torch"], "torch"),
        ("mindspore", ["float32"], ["numpy", "torch"], "numpy"),
        ("mindspore", ["bfloat16"], ["numpy"], None),
    ],
)
def test_the_kind_of_tensor_is_the_framework_s_own_or_numpy_s_or_another(preferred, dtypes, allowed, kind):
    assert kind_for(preferred, dtypes, allowed) == kind


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (numbers(0), numbers(0)),
        ([numbers(0), numbers(1)], everyone(2)),
        (numbers(0, dtype="bfloat16"), numbers(0, dtype="bfloat16")),
        (np.array([np.nan]), np.array([np.nan])),
        ((0, 2), (0, 2)),
        ([{"rank": 0}, {1}], [{"rank": 0}, {1}]),
        (None, None),
    ],
)
def test_what_is_expected_passes(seen, expected):
    assert_as_expected(Check("f", seen, expected))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (numbers(1), numbers(0)),
        (numbers(0).reshape(-1), numbers(0)),
        (numbers(0, dtype="uint16"), numbers(0, dtype="bfloat16").view("uint16").reshape(2, 3)),
        (numbers(0, dtype="bfloat16").view("uint16"), numbers(0, dtype="bfloat16")),
        (numbers(0).astype("float64"), numbers(0)),
        (everyone(2)[:1], everyone(2)),
        (everyone(2)[::-1], everyone(2)),
        (tuple(everyone(2)), everyone(2)),
        (None, numbers(0)),
        (1, True),
        (0, None),
        (["of rank 1"], ["of rank 0"]),
    ],
)
def test_what_is_not_expected_fails_with_the_call(seen, expected):
    with pytest.raises(AssertionError, match=r"^the call: "):
        assert_as_expected(Check("the call", seen, expected))


def raising(error):
    def function():
        if error is not None:
            raise error

    return function


def test_a_refusal_has_to_be_ours_and_clear():
    assert_as_expected(refusal("all_reduce", "float8", raising(ArgumentError("all_reduce: float8 is not summed"))))
    for unclear in ("all_reduce: no", "float8: no"):
        with pytest.raises(AssertionError, match=unclear):
            assert_as_expected(refusal("all_reduce", "float8", raising(ArgumentError(unclear))))
    for other in (None, RuntimeError("all_reduce: float8 is not summed")):
        with pytest.raises(AssertionError, match="ShimError was expected"):
            refusal("all_reduce", "float8", raising(other))


def test_a_barrier_that_does_not_wait_fails():
    late = np.array([np.inf])
    assert waited(1, lambda: None, lambda mine: [mine, mine]).seen is True
    assert waited(1, lambda: None, lambda mine: [late, mine]).seen is False


def _sums(tensors, rank, size):
    tensor = tensors.make(numbers(rank))
    dist.all_reduce(tensor)
    yield Check("all_reduce", tensors.read(tensor), oracle.all_reduce(everyone(size), "SUM")[rank])


def _wrong_on_one_rank(tensors, rank, size):
    for call in _sums(tensors, rank, size):
        if rank == 1:
            call.seen[1, 2] += 1
        yield call
    yield from _sums(tensors, rank, size)


def _raises_on_one_rank(tensors, rank, size):
    if rank == 0:
        raise ValueError("this rank does not like it")
    yield from _sums(tensors, rank, size)


def _checks_nothing(tensors, rank, size):
    yield from ()


def _dies(tensors, rank, size):
    if rank == 1:
        os._exit(7)
    yield from _sums(tensors, rank, size)


def test_a_broken_cell_fails_and_the_next_one_does_not():
    calls = [_sums, _wrong_on_one_rank, _sums, _raises_on_one_rank, _sums, _checks_nothing, _sums, _dies, _sums]
    told = []
    run = run_cells([cell_of(call) for call in calls], ONLY_NUMPY, told.append)
    assert told == run.results
    assert [result.subject.call for result in run.results] == calls
    assert [result.passed for result in run.results] == [call is _sums for call in calls]
    assert not run.passed
    errors = {
        result.subject.call: {failure.rank: failure.details for failure in result.failures} for result in run.results
    }
    assert list(errors[_wrong_on_one_rank]) == [1]
    assert errors[_wrong_on_one_rank][1].startswith("all_reduce: 1 of 6 elements differ, the first at [1, 2]")
    assert "this rank does not like it" in errors[_raises_on_one_rank][0]
    assert list(errors[_checks_nothing]) == [0, 1]
    assert "checked nothing" in errors[_checks_nothing][1]
    assert "exited with status 7" in errors[_dies][1]
    assert [sight.checks for sight in run.results[1].seen.values()] == [2, 2]


def test_cells_without_tensors_or_calls_are_not_run():
    of_bits = cell_of(_sums, dtypes=("bfloat16",))
    assert planned([of_bits, cell_of(None)], ONLY_NUMPY) == []
    assert not run_cells([of_bits], ONLY_NUMPY).passed


OF_NUMPY = [cell for cell in CELLS if cell.call is not None and kind_for("numpy", cell.dtypes, ["numpy"]) == "numpy"]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the names that torch has renamed are in the tables too
@pytest.mark.ranks(3, 4, 7)
@pytest.mark.parametrize("cell", OF_NUMPY, ids=lambda cell: f"numpy-{cell.name}")
def test_a_cell_on_other_numbers_of_ranks(cell: Cell) -> None:
    assert see(cell, "numpy").seen.differences == ()
