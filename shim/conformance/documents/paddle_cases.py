"""paddle.distributed.alltoall_single: one tensor, cut along its rows, goes to all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

import shim.frontends.paddle_2.distributed as dist
import shim.frontends.paddle_3.distributed as dist_3
from shim.conformance import oracle
from shim.conformance.assertions import assert_returned
from shim.conformance.documents.case import Case, Document, Note, by_rank
from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array

_SIZE = 2
_IN_SPLITS = [1, 2]


def _pairs(rank: int) -> list[Array]:
    return [np.arange(2, dtype="int64") + 2 * rank]


def _equal_parts(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_parallel_env()
    output = kind.blank([2], "int64")
    assert_returned(dist.alltoall_single(kind.make(inputs[0]), output))
    return [output]


def _equal_parts_3(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist_3.init_parallel_env()
    output = kind.blank([2], "int64")
    assert_returned(dist_3.alltoall_single(output, kind.make(inputs[0])))
    return [output]


def _exchanged_elements(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[oracle.joined(parts)] for parts in oracle.all_to_all([oracle.cut(one, _SIZE) for [one] in inputs])]


def _own_rank(rank: int) -> list[Array]:
    return [np.full([sum(_IN_SPLITS), _SIZE], rank, "float32")]


def _split_sizes(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_parallel_env()
    out_splits = [rank + 1] * _SIZE
    output = kind.blank([sum(out_splits), _SIZE], "float32")
    group = dist.new_group([0, 1])
    task = assert_returned(
        dist.alltoall_single(kind.make(inputs[0]), output, _IN_SPLITS, out_splits, sync_op=False, group=group)
    )
    task.wait()
    return [output]


def _split_sizes_3(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist_3.init_parallel_env()
    out_splits = [rank + 1] * _SIZE
    output = kind.blank([sum(out_splits), _SIZE], "float32")
    group = dist_3.new_group([0, 1])
    task = assert_returned(
        dist_3.alltoall_single(output, kind.make(inputs[0]), _IN_SPLITS, out_splits, sync_op=False, group=group)
    )
    task.wait()
    return [output]


def _exchanged_rows(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[oracle.joined(parts)] for parts in oracle.all_to_all([oracle.cut(one, _IN_SPLITS) for [one] in inputs])]


_PAIRS_SEEN = by_rank("int64", [[0, 2]], [[1, 3]])
_ROWS_SEEN = by_rank("float32", [[[0, 0], [1, 1]]], [[[0, 0], [0, 0], [1, 1], [1, 1]]])

DOCUMENTS = (
    Document(
        name="paddle.distributed.alltoall_single",
        source="https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/alltoall_single_en.html",
        version="Paddle 2.6 (input first; from 3.0.0rc0 on the output is first)",
        frontend="shim.frontends.paddle_2.distributed",
        collective="all_to_all",
        ranks=_SIZE,
        cases=(
            Case(
                "equal parts",
                "two ranks exchange one integer of two, input first; a task is returned",
                _pairs,
                _equal_parts,
                _exchanged_elements,
                _PAIRS_SEEN,
            ),
            Case(
                "split sizes",
                "one row to rank 0 and two to rank 1, in a group of both, with sync_op=False and a task",
                _own_rank,
                _split_sizes,
                _exchanged_rows,
                _ROWS_SEEN,
            ),
            Case(
                "equal parts, Paddle 3",
                "the first example with Paddle 3's order: output first",
                _pairs,
                _equal_parts_3,
                _exchanged_elements,
                _PAIRS_SEEN,
                frontend="shim.frontends.paddle_3.distributed",
            ),
            Case(
                "split sizes, Paddle 3",
                "the second example with Paddle 3's order: output first, input splits still before output splits",
                _own_rank,
                _split_sizes_3,
                _exchanged_rows,
                _ROWS_SEEN,
                frontend="shim.frontends.paddle_3.distributed",
            ),
        ),
        notes=(
            Note(
                says="alltoall_single(data, output): the input comes first",
                true="so it was up to 3.0.0b2; from 3.0.0rc0 on the output comes first, and a call in the old order overwrites its input",
                case="equal parts, Paddle 3",
            ),
        ),
    ),
)
