"""The documents of mindspore.mint.distributed.all_gather_into_tensor, and of the primitive mindspore.ops.AllGather and its two internal relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import shim.frontends.mindspore.mint.distributed as dist
from shim.conformance import oracle
from shim.conformance.assertions import assert_is_none, assert_raises, assert_returned, assert_that
from shim.conformance.documents.case import Case, Document, Note, by_rank, nothing_seen
from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array
from shim.frontends.mindspore import communication, ops

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


def _zeros(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[np.zeros([4, 8], "float32")] for _ in inputs]


def _own_weights(rank: int) -> list[Array]:
    """Return an input, and the gradient that flows back to what is gathered from it."""
    return [*_own_numbers(rank), np.arange(32, dtype="float32").reshape(4, 8) * (rank + 1) + rank]


def _in_a_network(kind: TensorKind, primitive: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Cell that calls *primitive* where the tensors are MindSpore's, the primitive itself elsewhere."""
    if kind.name != "mindspore":
        return primitive
    cell: Any = kind.module.nn.Cell

    class Network(cell):  # type: ignore[misc]  # mypy does not see MindSpore
        def __init__(self) -> None:
            super().__init__()
            self.primitive = primitive

        def construct(self, *tensors: Any) -> Any:
            return self.primitive(*tensors)

    return Network()


def _all_gather(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    network = _in_a_network(kind, ops.AllGather())
    return [network(kind.make(inputs[0]))]


@contextmanager
def _graph_mode(kind: TensorKind) -> Iterator[None]:
    """Compile what is run inside, as the documented example does."""
    mindspore = kind.module
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    try:
        yield
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def _all_gather_compiled(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    with _graph_mode(kind):
        return _all_gather(kind, rank, inputs)


def _mini_step(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    accumulator = kind.make(np.zeros([4, 8], "float32"))
    network = _in_a_network(kind, ops._MiniStepAllGather())
    return [network(kind.make(inputs[0]), accumulator)]


def _micro_step(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    accumulator = kind.make(np.zeros([4, 8], "float32"))
    network = _in_a_network(kind, ops._MicroStepAllGather())
    return [network(kind.make(inputs[0]), accumulator)]


def _wrong_group(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    assert_raises(TypeError, ops.AllGather, group=0)
    return []


def _gradient(kind: TensorKind, primitive: Callable[..., Any], inputs: list[Array], *others: Any) -> Any:
    """Return the gradient of the gathered tensor, weighted by the second input, with respect to the first."""
    network, weights = _in_a_network(kind, primitive), kind.make(inputs[1])

    def weighted(tensor: Any) -> Any:
        return (network(tensor, *others) * weights).sum()

    return kind.module.grad(weighted)(kind.make(inputs[0]))


def _all_gather_gradient(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    return [_gradient(kind, ops.AllGather(), inputs)]


def _all_gather_gradient_compiled(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    with _graph_mode(kind):
        return _all_gather_gradient(kind, rank, inputs)


def _mini_step_gradient(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    accumulator = kind.make(np.zeros([4, 8], "float32"))
    return [_gradient(kind, ops._MiniStepAllGather(), inputs, accumulator)]


def _micro_step_gradient(kind: TensorKind, rank: int, inputs: list[Array]) -> list[Any]:
    communication.init()
    accumulator = kind.make(np.zeros([4, 8], "float32"))
    return [_gradient(kind, ops._MicroStepAllGather(), inputs, accumulator)]


def _gathered(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[oracle.joined(parts)] for parts in oracle.all_gather([own[0] for own in inputs])]


def _reduced_and_scattered(inputs: list[list[Array]]) -> list[list[Array]]:
    return [[part] for part in oracle.reduce_scatter([oracle.cut(own[1], _SIZE) for own in inputs], "SUM")]


_ONES_SEEN = by_rank("float32", *([[[[1] * 8] * 4]] * _SIZE))
_ONLY_MINDSPORE = ("mindspore",)


def _backward(name: str, shows: str, call: Callable[[TensorKind, int, list[Array]], list[Any]]) -> Case:
    kinds = _ONLY_MINDSPORE
    return Case(name, shows, _own_weights, call, _reduced_and_scattered, kinds=kinds, collective="reduce_scatter")


_ALL_GATHER_INTO_TENSOR = Document(
    name="mindspore.mint.distributed.all_gather_into_tensor",
    source="https://www.mindspore.cn/docs/en/r2.5.0/api_python/mint/mindspore.mint.distributed.all_gather_into_tensor.html",
    version="MindSpore 2.5",
    frontend="shim.frontends.mindspore.mint.distributed",
    collective="all_gather",
    ranks=_SIZE,
    cases=(
        Case(
            "ones",
            "two ranks gather two rows of ones each into four rows; None is returned",
            _ones,
            _synchronous,
            _gathered,
            by_rank("float32", *([[[[1] * 8] * 4]] * _SIZE)),
        ),
        Case(
            "ranks told apart",
            "the same call with numbers that differ by rank and place",
            _own_numbers,
            _synchronous,
            _gathered,
        ),
        Case(
            "asynchronous",
            "async_op=True returns a CommHandle; after wait() the result is there",
            _own_numbers,
            _asynchronous,
            _gathered,
        ),
        Case(
            "world by name",
            "the group may be given as its documented name, hccl_world_group",
            _own_numbers,
            _in_a_named_group,
            _gathered,
        ),
        Case(
            "wrong types",
            "what is no tensor, a group that is no str, an async_op that is no bool: TypeError, nothing written",
            _ones,
            _wrong_types,
            _zeros,
        ),
        Case(
            "before initialisation",
            "a call before init_process_group: RuntimeError, nothing written",
            _ones,
            _before_init,
            _zeros,
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

_ALL_GATHER = Document(
    name="mindspore.ops.AllGather",
    source="https://www.mindspore.cn/docs/zh-CN/r1.7/api_python/ops/mindspore.ops.AllGather.html",
    version="MindSpore 1.7, in an article that quotes its source and translates its documentation",
    frontend="shim.frontends.mindspore.ops",
    collective="all_gather",
    ranks=_SIZE,
    cases=(
        Case("ones", "a network of two ranks gathers two rows of ones each", _ones, _all_gather, _gathered, _ONES_SEEN),
        Case(
            "ones in graph mode",
            "the same, compiled, as the example is written",
            _ones,
            _all_gather_compiled,
            _gathered,
            _ONES_SEEN,
            _ONLY_MINDSPORE,
        ),
        Case(
            "ranks told apart",
            "the same with numbers that differ by rank and place",
            _own_numbers,
            _all_gather,
            _gathered,
        ),
        Case("mini-step", "_MiniStepAllGather, an accumulator as second input", _own_numbers, _mini_step, _gathered),
        Case("micro-step", "_MicroStepAllGather, an accumulator as second input", _own_numbers, _micro_step, _gathered),
        Case("wrong group", "a group that is no str: TypeError", _ones, _wrong_group, nothing_seen),
        _backward("gradient", "AllGather's gradient is a reduce-scatter of the sum", _all_gather_gradient),
        _backward("gradient in graph mode", "the same, compiled", _all_gather_gradient_compiled),
        _backward("mini-step gradient", "reduce-scatters in every mini-step, as documented", _mini_step_gradient),
        _backward("micro-step gradient", "reduce-scatters in every micro-step, as documented", _micro_step_gradient),
    ),
    notes=(
        Note(
            says="the output's shape is (N, x_1, x_2, ..., x_R)",
            true="it is (N*x_1, x_2, ..., x_R), as the page's own example shows; MindSpore's own page of 2.5 says so",
            case="ones",
        ),
        Note(
            says="_MiniStepAllGather and _MicroStepAllGather do nothing in forward",
            true="they gather: infer_shape in the same article multiplies the rows by the number of ranks",
            case="mini-step",
        ),
    ),
)

DOCUMENTS = (_ALL_GATHER_INTO_TENSOR, _ALL_GATHER)
