"""What ranks must have after a call, against numpy's arithmetic on whole tensors; and that one wrong element is found."""

from __future__ import annotations

import numpy as np
import pytest

from shim.bench.cases import DTYPES, Case
from shim.bench.libraries.patterns import ARRAY_DTYPES, Array, fill, input_of, mismatch

SIZE = 4096  # bytes: several periods


def whole_inputs(case: Case) -> list[Array]:
    inputs = []
    for rank, count in enumerate(case.parts):
        array = np.empty(count, ARRAY_DTYPES[case.dtype])
        fill(array, input_of(rank, case.dtype))
        inputs.append(array)
    return inputs


def numbers(array: Array) -> Array:
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array


def bits(array: Array, dtype: str) -> Array:
    if dtype == "bfloat16":
        return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return array.astype(dtype)


def outputs_of(case: Case) -> list[Array]:
    inputs, ranks = whole_inputs(case), range(case.ranks)
    total = bits(sum(numbers(array) for array in inputs), case.dtype) if len(set(case.parts)) == 1 else None
    if case.collective == "all_reduce":
        return [total for _ in ranks]
    if case.collective == "reduce_scatter":
        return np.split(total, case.ranks)
    if case.collective == "all_to_all":
        return [np.concatenate([np.split(array, case.ranks)[rank] for array in inputs]) for rank in ranks]
    if case.collective == "broadcast":
        return [inputs[0] for _ in ranks]
    if case.collective == "send_receive":
        return [inputs[rank ^ 1] for rank in ranks]
    return [np.concatenate(inputs) for _ in ranks]


CASES = [
    Case(collective, ranks, dtype, SIZE)
    for collective in (
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "all_gather_unequal", "send_receive",
    )
    for ranks in ((2, 4) if collective == "send_receive" else (2, 3, 8))
    for dtype in DTYPES
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_right_outputs_are_taken_and_one_wrong_element_is_found(case: Case) -> None:
    for rank, output in enumerate(outputs_of(case)):
        assert mismatch(case, rank, output) is None
        for place in (0, len(output) // 2, len(output) - 1):
            wrong = output.copy()
            wrong[place] += 1
            told = mismatch(case, rank, wrong)
            assert told is not None
            assert f"element {place} " in told


@pytest.mark.parametrize("case", [case for case in CASES if case.ranks == 3], ids=str)
def test_another_ranks_output_is_wrong(case: Case) -> None:
    first, second = outputs_of(case)[:2]
    same = case.collective in ("all_reduce", "broadcast", "all_gather", "all_gather_unequal")
    assert (mismatch(case, 1, first) is None) is same
    assert (mismatch(case, 0, second) is None) is same


def test_an_output_of_another_length_is_wrong() -> None:
    case = Case("all_reduce", 2, "float32", SIZE)
    assert "elements" in (mismatch(case, 0, np.concatenate([outputs_of(case)[0], [1]]).astype("float32")) or "")
