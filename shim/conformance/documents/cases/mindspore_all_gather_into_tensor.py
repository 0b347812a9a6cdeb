"""mindspore.mint.distributed.all_gather_into_tensor: all ranks' tensors, concatenated in one that the caller passes."""

from __future__ import annotations

from typing import Any

import numpy as np

import shim.frontends.mindspore.mint.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_raises, assert_returned, assert_that
from shim.conformance.documents.case import Array, Case, Document, Note, by_rank
from shim.conformance.kinds import TensorKind

_SIZE = 2


def _ones(rank: int) -> list[Array]:
    return [np.ones([2, 8], "float32")]


def _own_numbers(rank: int) -> list[Array]:
    return [np.arange(16, dtype="float32").reshape(2, 8) + 100 * rank]


def _synchronous(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    output = kind.make(np.zeros([4, 8], "float32"))
    assert_is_none(dist.all_gather_into_tensor(output, kind.make(inputs[0])))
    return [output]


def _asynchronous(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    output = kind.make(np.zeros([4, 8], "float32"))
    handle = assert_returned(dist.all_gather_into_tensor(output, kind.make(inputs[0]), async_op=True))
    assert_that(type(handle).__name__ == "CommHandle", f"a CommHandle was expected, {handle!r} returned")
    handle.wait()
    return [output]


def _in_a_named_group(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    output = kind.make(np.zeros([4, 8], "float32"))
    assert_is_none(dist.all_gather_into_tensor(output, kind.make(inputs[0]), group="hccl_world_group"))
    return [output]


def _wrong_types(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    dist.init_process_group()
    output, tensor = kind.make(np.zeros([4, 8], "float32")), kind.make(inputs[0])
    assert_raises(TypeError, dist.all_gather_into_tensor, output, "a string")
    assert_raises(TypeError, dist.all_gather_into_tensor, "a string", tensor)
    assert_raises(TypeError, dist.all_gather_into_tensor, output, tensor, group=0)
    assert_raises(TypeError, dist.all_gather_into_tensor, output, tensor, async_op=1)
    return [output]


def _before_init(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    output = kind.make(np.zeros([4, 8], "float32"))
    assert_raises(RuntimeError, dist.all_gather_into_tensor, output, kind.make(inputs[0]))
    return [output]


def _gathered(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[oracle.joined(parts)] for parts in oracle.all_gather([one for [one] in inputs])]


def _zeros(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[np.zeros([4, 8], "float32")] for _ in inputs]


DOCUMENT = Document(
    name="mindspore.mint.distributed.all_gather_into_tensor",
    source="https://www.mindspore.cn/docs/en/r2.5.0/api_python/mint/mindspore.mint.distributed.all_gather_into_tensor.html",
    version="MindSpore 2.5",
    frontend="shim.frontends.mindspore.mint.distributed",
    cases=(
        Case(
            name="ones",
            shows="two ranks gather two rows of ones each into four rows; None is returned",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_ones,
            call=_synchronous,
            oracle=_gathered,
            documented=by_rank("float32", *([[[[1] * 8] * 4]] * _SIZE)),
        ),
        Case(
            name="ranks told apart",
            shows="the same call with numbers that differ by rank and place",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_numbers,
            call=_synchronous,
            oracle=_gathered,
        ),
        Case(
            name="asynchronous",
            shows="async_op=True returns a CommHandle; after wait() the result is there",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_numbers,
            call=_asynchronous,
            oracle=_gathered,
        ),
        Case(
            name="world by name",
            shows="the group may be given as its documented name, hccl_world_group",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_own_numbers,
            call=_in_a_named_group,
            oracle=_gathered,
        ),
        Case(
            name="wrong types",
            shows="what is no tensor, a group that is no str, an async_op that is no bool: TypeError, nothing written",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_ones,
            call=_wrong_types,
            oracle=_zeros,
        ),
        Case(
            name="before initialisation",
            shows="a call before init_process_group: RuntimeError, nothing written",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_ones,
            call=_before_init,
            oracle=_zeros,
        ),
    ),
    notes=(
        Note(
            says="in its first sentence, that the gathered tensor is returned",
            true="it is written into output_tensor; None or, with async_op, a CommHandle is returned, as the page says further down",
            case="ones",
        ),
    ),
)
