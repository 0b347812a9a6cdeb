"""The documents of torch.distributed.all_to_all, by which every rank sends each rank a tensor of its own, and of all_gather_into_tensor, as an article explains it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

import shim.frontends.torch.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_raises, assert_returned, assert_that
from shim.conformance.documents.case import Case, Document, Note, by_rank, no_tensors, nothing_seen
from shim.conformance.kinds import UNWRITTEN, TensorKind
from shim.conformance.oracle import Array

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


def _own_rank_twice(rank: int) -> list[Array]:
    return [np.array([rank] * 2, dtype="float32")]


def _stacked(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group("gloo", rank=rank, world_size=_SIZE)
    output = kind.blank([_SIZE, 2], "float32")
    assert_is_none(dist.all_gather_into_tensor(output, kind.make(inputs[0])))
    return [output]


def _concatenated(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group("gloo", rank=rank, world_size=_SIZE)
    output = kind.blank([_SIZE * 2], "float32")
    assert_is_none(dist.all_gather_into_tensor(output, kind.make(inputs[0])))
    return [output]


def _in_background(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group("gloo", rank=rank, world_size=_SIZE)
    output = kind.blank([_SIZE, 2], "float32")
    work = assert_returned(dist.all_gather_into_tensor(output, kind.make(inputs[0]), async_op=True))
    work.wait()
    assert_that(work.is_completed(), "the work was waited for, and says that it has not completed")
    return [output]


def _gathered_rows(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[np.stack(parts)] for parts in oracle.all_gather([one for [one] in inputs])]


def _gathered_flat(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[oracle.joined(parts)] for parts in oracle.all_gather([one for [one] in inputs])]


def _ranks_disagree(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group("gloo", rank=rank, world_size=_SIZE)
    output = kind.blank([_SIZE, 2], "float32")
    odd_one = kind.make(np.zeros([3], "float32")), kind.blank([_SIZE, 3], "float32")
    arguments = (odd_one[1], odd_one[0]) if rank == 2 else (output, kind.make(inputs[0]))
    assert_raises(RuntimeError, dist.all_gather_into_tensor, *arguments)
    return [output]


def _unwritten_rows(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[np.full([_SIZE, 2], UNWRITTEN, "float32")] for _ in inputs]


def _started_with_dash_c(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    child = subprocess.run(
        [sys.executable, "-c", f"from __main__ import run; run({rank}, {_SIZE})"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if child.returncode == 0 or "ImportError: cannot import name 'run' from '__main__'" not in child.stderr:
        raise AssertionError(f"an ImportError was expected, exit status {child.returncode} seen:\n{child.stderr}")
    return []


_NOTHING: tuple[list[Array], ...] = ([],) * _SIZE

_ALL_TO_ALL = Document(
    name="torch.distributed.all_to_all",
    source="https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_to_all",
    version="PyTorch 1.10 and later, in a copy translated into Chinese",
    frontend="shim.frontends.torch.distributed",
    collective="all_to_all",
    ranks=_SIZE,
    cases=(
        Case(
            "equal parts",
            "each of four ranks sends one integer to each",
            _integers,
            _equal_parts,
            _exchanged_elements,
            _INTEGERS_SEEN,
        ),
        Case(
            "as scatters",
            "the same by four scatters, each from another rank, with an empty list elsewhere",
            _integers,
            _as_scatters,
            _exchanged_elements,
            _INTEGERS_SEEN,
            collective="scatter",
        ),
        Case(
            "unequal parts",
            "ranks hold five to nine integers and send parts of one to three",
            _tens,
            _unequal_parts,
            _exchanged_parts,
            _TENS_SEEN,
        ),
        Case(
            "complex into integers",
            "complex inputs and int64 outputs, as printed: a ValueError on every rank, nothing written",
            _diagonal_numbers,
            _complex_into_integers,
            _unwritten,
        ),
        Case(
            "complex",
            "complex inputs and outputs, which is what the printed result needs",
            _diagonal_numbers,
            _complex_into_complex,
            _exchanged_elements,
            _COMPLEX_SEEN,
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

_ALL_GATHER_INTO_TENSOR = Document(
    name="torch.distributed.all_gather_into_tensor",
    source="http://www.dtcms.com/a/352403.html",
    version="PyTorch 2 (an article of 2025 that names no version)",
    frontend="shim.frontends.torch.distributed",
    collective="all_gather",
    ranks=_SIZE,
    cases=(
        Case(
            "stacked",
            "four ranks gather two numbers each into a tensor with a row for every rank",
            _own_rank_twice,
            _stacked,
            _gathered_rows,
            by_rank("float32", *([[[[0, 0], [1, 1], [2, 2], [3, 3]]]] * _SIZE)),
        ),
        Case(
            "concatenated",
            "the same numbers into a tensor of one dimension",
            _own_rank_twice,
            _concatenated,
            _gathered_flat,
        ),
        Case(
            "asynchronous",
            "async_op=True returns a work; after wait() the result is there",
            _own_rank_twice,
            _in_background,
            _gathered_rows,
            by_rank("float32", *([[[[0, 0], [1, 1], [2, 2], [3, 3]]]] * _SIZE)),
        ),
        Case(
            "ranks disagree",
            "one rank passes another shape: an error on every rank, nothing written",
            _own_rank_twice,
            _ranks_disagree,
            _unwritten_rows,
        ),
        Case(
            "main as printed",
            "a child started by python -c cannot import the parent's functions from __main__",
            no_tensors,
            _started_with_dash_c,
            nothing_seen,
            _NOTHING,
        ),
    ),
    notes=(
        Note(
            says="the output must have a dimension more than the input, one row for every rank, also with gloo",
            true="torch documents this form and the concatenated one, and its gloo backend refuses this one; here both work",
            case="stacked",
        ),
        Note(
            says="the program starts its ranks by python -c 'from __main__ import run; ...'",
            true="in such a child __main__ is the -c line itself, so the import fails; use a launcher, such as shim run",
            case="main as printed",
        ),
    ),
)

DOCUMENTS = (_ALL_TO_ALL, _ALL_GATHER_INTO_TENSOR)
