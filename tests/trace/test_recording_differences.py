"""Which calls count as equal, and what is said of those that do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_recordings import WORLD, all_reduce, call, failure, recording, tensors
from recorded_programs import EVERYTHING

from shim.cli.trace.diff import lines_of
from shim.trace.calls import Call, Shape
from shim.trace.differences import compare, within
from shim.trace.reading import read_recording

SPLITS = Shape(WORLD, "all_to_all", tensors((4, 3)), tensors((4, 3)), output_splits=(1, 3), input_splits=(3, 1))
PARTS = tensors((1, 3), (3, 3), is_list=True), tensors((9,), (3,), is_list=True)


def _compared(left: Shape, right: Shape, *more: dict[str, Any]) -> list[str]:
    of_left, of_right = more or ({}, {})
    one, other = call(0, left, 0, 1, **of_left), call(0, right, 5, 9, **of_right)
    outcome = compare(recording(one, size=1), recording(other, size=1))
    return [what for difference in outcome.differences for what in difference.whats]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (all_reduce(), all_reduce(source="/b/port.py:9", function="paddle.all_reduce", is_async=True)),
        (all_reduce(), all_reduce(outputs=tensors((6,)), inputs=tensors((3, 2)))),
        (all_reduce(), all_reduce(group=replace(WORLD, name="hccl_world_group", key="another"))),
        (Shape(WORLD, "all_gather", tensors((2, 2)), tensors((2,))), Shape(WORLD, "all_gather", tensors((2,), (2,), is_list=True), tensors((2,)))),
        (SPLITS, Shape(WORLD, "all_to_all", *PARTS)),
        (Shape(WORLD, "send", None, tensors((2,)), peer=1, tag=3), Shape(WORLD, "send", None, tensors((2,)), peer=1)),
        (all_reduce(is_of_objects=True), all_reduce(is_of_objects=True, inputs=tensors((99,), dtype="uint8"))),
    ],
    ids=["frontend", "shape", "group name", "list", "splits", "tag", "objects"],
)  # fmt: skip
def test_forms_of_the_same_call_are_equal(left: Shape, right: Shape) -> None:
    assert _compared(left, right) == []
    assert _compared(right, left) == []


@pytest.mark.parametrize(
    ("dtype", "one", "other", "is_close"),
    [
        ("float32", np.float32([1, 1000]), np.float32([1.001, 1001]), True),
        ("float32", np.float32([1, 1000]), np.float32([1.001, 1011]), False),
        ("float64", np.array([0.0, np.nan, np.inf]), np.array([0.005, np.nan, np.inf]), True),
        ("float64", np.array([np.nan]), np.array([1.0]), False),
        ("float64", np.ones(2), np.ones(1), False),
        ("complex64", np.complex64([1j]), np.complex64([1.001j]), True),
        ("bfloat16", np.uint16([0x3F80, 0xC000]), np.uint16([0x3F81, 0xC000]), True),  # 1 and 1.0078125
        ("bfloat16", np.uint16([0x3F80]), np.uint16([0x4000]), False),  # 2
        ("int64", np.array([1000]), np.array([1001]), False),
        ("float8_e4m3fn", np.uint8([1]), np.uint8([2]), False),
        ("float32 and float64", np.ones(2), np.ones(2) + 1e-9, False),
    ],
)
def test_floating_point_values_may_differ_by_the_tolerance(
    dtype: str, one: np.ndarray, other: np.ndarray, is_close: bool, tmp_path: Path
) -> None:
    for name, digest, values in (("left", 1, one), ("right", 2, other)):
        (tmp_path / name).mkdir()
        values.tofile(tmp_path / name / f"{digest:016x}")
    folders = [tmp_path / "left", tmp_path / "right"]
    assert within(0.01, folders)(dtype, 1, 2) is is_close
    assert not within(0.0, folders)(dtype, 1, 2)
    assert not within(0.01, folders)(dtype, 1, 3)
    sides = [
        recording(
            call(
                0,
                all_reduce(inputs=tensors((2,), dtype=dtype), outputs=tensors((2,), dtype=dtype)),
                0,
                1,
                input_digest=n,
            ),
            size=1,
        )
        for n in (1, 2)
    ]
    sides = [replace(side, ranks={0: replace(side.ranks[0], digest_key=7)}) for side in sides]
    outcome = compare(*sides, close=within(0.01, folders))
    assert (outcome.equal, outcome.close, len(outcome.differences)) == ((1, 1, 0) if is_close else (0, 0, 1))
    assert ("1 of these within the tolerance" in "".join(lines_of(outcome))) is is_close


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"collective": "broadcast", "op": "", "root": 0}, "collective all_reduce | broadcast"),
        ({"group": replace(WORLD, ranks=(1, 0))}, "ranks of the group [0, 1] | [1, 0]"),
        ({"op": "MAX"}, "op SUM | MAX"),
        ({"factor": 2.0}, "factor 1.0 | 2.0"),
        ({"root": 1}, "root None | 1"),
        ({"peer": 1}, "peer None | 1"),
        ({"inputs": tensors((2, 3), dtype="float64"), "outputs": tensors((2, 3), dtype="float64")}, "dtype float32 | float64"),
        ({"inputs": tensors((7,))}, "elements of the inputs 6 | 7"),
        ({"outputs": tensors((7,))}, "elements of the outputs 6 | 7"),
        ({"is_of_objects": True}, "collective all_reduce | all_reduce of objects"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_differs_is_named(changes: dict[str, Any], text: str) -> None:
    assert _compared(all_reduce(), all_reduce(**changes)) == [text]


def test_split_sizes_are_compared() -> None:
    assert _compared(SPLITS, replace(SPLITS, output_splits=(3, 1))) == ["elements of the outputs [3, 9] | [9, 3]"]


@pytest.mark.parametrize(
    ("left", "right", "texts"),
    [
        ({"input_digest": 1, "output_digest": 2}, {"input_digest": 1, "output_digest": 2}, []),
        ({"input_digest": 1, "output_digest": 2}, {"input_digest": 1, "output_digest": 3}, ["values of the outputs: digest 0000000000000002 | 0000000000000003"]),
        ({"input_digest": 1}, {"input_digest": 255}, ["values of the inputs: digest 0000000000000001 | 00000000000000ff"]),
        ({"input_digest": 1}, {}, []),
        ({"failure": failure()}, {}, ["end MismatchError | ended"]),
    ],
)  # fmt: skip
def test_values_and_ends_are_compared(left: dict[str, Any], right: dict[str, Any], texts: list[str]) -> None:
    assert _compared(all_reduce(), all_reduce(), left, right) == texts


def test_digests_of_different_keys_are_not_compared_and_that_is_told() -> None:
    sides = [recording(call(0, all_reduce(), 1, 2, input_digest=digest)) for digest in (1, 2)]
    for side, key in zip(sides, (7, 8), strict=True):
        side.ranks[0].digest_key = key
    outcome = compare(*sides)
    assert (outcome.differences, outcome.equal, outcome.digests) == ([], 1, 0)
    assert list(lines_of(outcome)) == [
        "1 calls on 2 ranks are equal, 0 with digests",
        "No values were compared, as the digests have different keys: record both with one SHIM_TRACE_DIGESTS.",
    ]
    assert len(list(lines_of(compare(*sides, digests=False)))) == 1
    sides[1].ranks[0].digest_key = 7
    assert len(compare(*sides).differences) == 1


def _job(*ops: str, rank: int = 0) -> list[Call]:
    return [
        call(rank, all_reduce(op=op, source=f"/a/train.py:{line}"), line, line + 1) for line, op in enumerate(ops, 1)
    ]


def test_the_first_difference_of_each_rank_is_shown_with_its_surroundings() -> None:
    left = recording(*_job("SUM", "AVG", "MIN", "MAX", "SUM", "AVG"), *_job("SUM", "SUM", rank=1))
    right = recording(*_job("SUM", "AVG", "MIN", "BOR", "SUM"), *_job("SUM", rank=1))
    outcome = compare(left, right)
    told = all_reduce().text()
    assert list(lines_of(outcome)) == [
        "rank 0, call 4: op MAX | BOR",
        *(f"    {told.replace('SUM', op)}, at /a/train.py:{line}" for line, op in ((2, "AVG"), (3, "MIN"))),
        f"  A {told.replace('SUM', 'MAX')}, at /a/train.py:4",
        *(f"    {told.replace('SUM', op)}, at /a/train.py:{line}" for line, op in ((5, "SUM"), (6, "AVG"))),
        f"  B {told.replace('SUM', 'BOR')}, at /a/train.py:4",
        f"    {told}, at /a/train.py:5",
        "rank 1, call 2: call there | none",
        f"    {told}, at /a/train.py:1",
        f"  A {told}, at /a/train.py:2",
        "  B nothing: the rank makes no further call",
        "4 calls on 2 ranks are equal, 0 with digests; 2 of 2 ranks differ",
    ]


def test_a_rank_that_one_side_lacks_differs() -> None:
    outcome = compare(recording(*_job("SUM"), *_job("SUM", rank=1)), recording(*_job("SUM"), size=1))
    assert [(one.rank, one.whats) for one in outcome.differences] == [(1, ("call there | none",))]


def test_two_runs_of_a_program_are_equal_and_another_is_not(recorded: Callable[..., Path]) -> None:
    one, other = recorded(EVERYTHING, 2, True), recorded(EVERYTHING + "\n# again", 2, True)
    outcome = compare(read_recording(one), read_recording(other))
    assert outcome.differences == []
    assert outcome.equal == 2 * 2 * 14
    assert outcome.digests == outcome.equal - 2 * 2  # a barrier has no values
    changed = recorded(EVERYTHING.replace("rank + 1, np.float32", "rank + 2, np.float32"), 2, True)
    found = compare(read_recording(one), read_recording(changed))
    assert [one.number for one in found.differences] == [1, 1]
    assert all(re.match("values of the inputs: digest .*", difference.whats[0]) for difference in found.differences)
    assert compare(read_recording(one), read_recording(changed), digests=False).differences == []
