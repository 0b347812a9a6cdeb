"""torch.distributed.all_gather_into_tensor: all ranks' tensors in one tensor, as an article explains it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

import shim.frontends.torch.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_raises, assert_returned, assert_that
from shim.conformance.documents.case import Array, Case, Document, Note, by_rank
from shim.conformance.kinds import UNWRITTEN, TensorKind

_SIZE = 4


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

DOCUMENT = Document(
    name="torch.distributed.all_gather_into_tensor",
    source="http://www.dtcms.com/a/352403.html",
    version="PyTorch 2 (an article of 2025 that names no version)",
    frontend="shim.frontends.torch.distributed",
    cases=(
        Case(
            name="stacked",
            shows="four ranks gather two numbers each into a tensor with a row for every rank",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_rank_twice,
            call=_stacked,
            oracle=_gathered_rows,
            documented=by_rank("float32", *([[[[0, 0], [1, 1], [2, 2], [3, 3]]]] * _SIZE)),
        ),
        Case(
            name="concatenated",
            shows="the same numbers into a tensor of one dimension",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_rank_twice,
            call=_concatenated,
            oracle=_gathered_flat,
        ),
        Case(
            name="asynchronous",
            shows="async_op=True returns a work; after wait() the result is there",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_rank_twice,
            call=_in_background,
            oracle=_gathered_rows,
            documented=by_rank("float32", *([[[[0, 0], [1, 1], [2, 2], [3, 3]]]] * _SIZE)),
        ),
        Case(
            name="ranks disagree",
            shows="one rank passes another shape: an error on every rank, nothing written",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_rank_twice,
            call=_ranks_disagree,
            oracle=_unwritten_rows,
        ),
        Case(
            name="main as printed",
            shows="a child started by python -c cannot import the parent's functions from __main__",
            collective="all_gather",
            ranks=_SIZE,
            inputs=lambda rank: [],
            call=_started_with_dash_c,
            oracle=lambda inputs: [[] for _ in inputs],
            documented=_NOTHING,
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
