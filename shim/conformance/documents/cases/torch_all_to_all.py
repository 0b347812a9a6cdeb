"""torch.distributed.all_to_all: every rank sends each rank a tensor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import shim.frontends.torch.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_raises
from shim.conformance.documents.case import Array, Case, Document, Note, by_rank
from shim.conformance.kinds import UNWRITTEN, TensorKind

_SIZE = 4
_EVEN = [1] * _SIZE
_INPUT_SPLITS = [[2, 2, 1, 1], [3, 2, 2, 2], [2, 1, 1, 1], [2, 2, 2, 1]]
_OUTPUT_SPLITS = [[2, 3, 2, 2], [2, 2, 1, 2], [1, 2, 1, 2], [1, 2, 1, 1]]


def _integers(rank: int) -> list[Array]:
    return [np.arange(4, dtype="int64") + 4 * rank]


def _equal_parts(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    parts = kind.split(kind.make(inputs[0]), _EVEN)
    outputs = kind.split(kind.blank([_SIZE], "int64"), _EVEN)
    assert_is_none(dist.all_to_all(outputs, parts))
    return outputs


def _as_scatters(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    parts = kind.split(kind.make(inputs[0]), _EVEN)
    outputs = kind.split(kind.blank([_SIZE], "int64"), _EVEN)
    for source in range(_SIZE):
        assert_is_none(dist.scatter(outputs[source], parts if source == rank else [], src=source))
    return outputs


def _exchanged_elements(inputs: list[list[Array]]) -> list[list[Array]]:
    return oracle.all_to_all([oracle.cut(whole, _SIZE) for [whole] in inputs])


_INTEGERS_SEEN = by_rank(
    "int64",
    [[0], [4], [8], [12]],
    [[1], [5], [9], [13]],
    [[2], [6], [10], [14]],
    [[3], [7], [11], [15]],
)


def _tens(rank: int) -> list[Array]:
    return [np.arange(sum(_INPUT_SPLITS[rank]), dtype="int64") + 10 * rank]


def _unequal_parts(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    parts = kind.split(kind.make(inputs[0]), _INPUT_SPLITS[rank])
    outputs = [kind.blank([rows], "int64") for rows in _OUTPUT_SPLITS[rank]]
    assert_is_none(dist.all_to_all(outputs, parts))
    return outputs


def _exchanged_parts(inputs: list[list[Array]]) -> list[list[Array]]:
    return oracle.all_to_all([oracle.cut(inputs[rank][0], _INPUT_SPLITS[rank]) for rank in range(_SIZE)])


_TENS_SEEN = tuple(
    [np.array(part, dtype="int64") for part in parts]
    for parts in (
        ([0, 1], [10, 11, 12], [20, 21], [30, 31]),
        ([2, 3], [13, 14], [22], [32, 33]),
        ([4], [15, 16], [23], [34, 35]),
        ([5], [17, 18], [24], [36]),
    )
)


def _diagonal_numbers(rank: int) -> list[Array]:
    return [((np.arange(4) + 1 + 4 * rank) * (1 + 1j)).astype("complex64")]


def _complex_into_integers(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    parts = kind.split(kind.make(inputs[0]), _EVEN)
    outputs = kind.split(kind.blank([_SIZE], "int64"), _EVEN)
    assert_raises(ValueError, dist.all_to_all, outputs, parts)
    return outputs


def _unwritten(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[np.array([UNWRITTEN], dtype="int64") for _ in inputs] for _ in inputs]


def _complex_into_complex(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    parts = kind.split(kind.make(inputs[0]), _EVEN)
    outputs = kind.split(kind.blank([_SIZE], "complex64"), _EVEN)
    assert_is_none(dist.all_to_all(outputs, parts))
    return outputs


_COMPLEX_SEEN = by_rank(
    "complex64",
    [[1 + 1j], [5 + 5j], [9 + 9j], [13 + 13j]],
    [[2 + 2j], [6 + 6j], [10 + 10j], [14 + 14j]],
    [[3 + 3j], [7 + 7j], [11 + 11j], [15 + 15j]],
    [[4 + 4j], [8 + 8j], [12 + 12j], [16 + 16j]],
)

DOCUMENT = Document(
    name="torch.distributed.all_to_all",
    source="https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_to_all",
    version="PyTorch 1.10 and later, in a copy translated into Chinese",
    frontend="shim.frontends.torch.distributed",
    cases=(
        Case(
            name="equal parts",
            shows="each of four ranks sends one integer to each",
            collective="all_to_all",
            ranks=_SIZE,
            inputs=_integers,
            call=_equal_parts,
            oracle=_exchanged_elements,
            documented=_INTEGERS_SEEN,
        ),
        Case(
            name="as scatters",
            shows="the same by four scatters, each from another rank, with an empty list elsewhere",
            collective="scatter",
            ranks=_SIZE,
            inputs=_integers,
            call=_as_scatters,
            oracle=_exchanged_elements,
            documented=_INTEGERS_SEEN,
        ),
        Case(
            name="unequal parts",
            shows="ranks hold five to nine integers and send parts of one to three",
            collective="all_to_all",
            ranks=_SIZE,
            inputs=_tens,
            call=_unequal_parts,
            oracle=_exchanged_parts,
            documented=_TENS_SEEN,
        ),
        Case(
            name="complex into integers",
            shows="complex inputs and int64 outputs, as printed: a ValueError on every rank, nothing written",
            collective="all_to_all",
            ranks=_SIZE,
            inputs=_diagonal_numbers,
            call=_complex_into_integers,
            oracle=_unwritten,
        ),
        Case(
            name="complex",
            shows="complex inputs and outputs, which is what the printed result needs",
            collective="all_to_all",
            ranks=_SIZE,
            inputs=_diagonal_numbers,
            call=_complex_into_complex,
            oracle=_exchanged_elements,
            documented=_COMPLEX_SEEN,
        ),
    ),
    notes=(
        Note(
            says="the complex example receives complex64 parts in tensors allocated as int64",
            true="all tensors must have one dtype: torch raises ValueError, and so does this frontend",
            case="complex into integers",
        ),
    ),
)
