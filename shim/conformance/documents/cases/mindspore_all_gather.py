"""mindspore.ops.AllGather and its two internal relatives: a primitive that returns all ranks' tensors, concatenated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from shim.conformance import oracle
from shim.conformance.assertions import assert_raises
from shim.conformance.documents.case import Array, Case, Document, Note, by_rank
from shim.conformance.kinds import TensorKind
from shim.frontends.mindspore import communication, ops

_SIZE = 2


def _ones(rank: int) -> list[Array]:
    return [np.ones([2, 8], "float32")]


def _own_numbers(rank: int) -> list[Array]:
    return [np.arange(16, dtype="float32").reshape(2, 8) + 100 * rank]


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


def _forward(
    name: str, shows: str, inputs: Callable[[int], list[Array]], call: Any, documented: Any = None, kinds: Any = ()
) -> Case:
    return Case(name, shows, "all_gather", _SIZE, inputs, call, _gathered, documented, kinds)


def _backward(name: str, shows: str, call: Any) -> Case:
    return Case(name, shows, "reduce_scatter", _SIZE, _own_weights, call, _reduced_and_scattered, kinds=_ONLY_MINDSPORE)


DOCUMENT = Document(
    name="mindspore.ops.AllGather",
    source="https://www.mindspore.cn/docs/zh-CN/r1.7/api_python/ops/mindspore.ops.AllGather.html",
    version="MindSpore 1.7, in an article that quotes its source and translates its documentation",
    frontend="shim.frontends.mindspore.ops",
    cases=(
        _forward("ones", "a network of two ranks gathers two rows of ones each", _ones, _all_gather, _ONES_SEEN),
        _forward(
            "ones in graph mode",
            "the same, compiled, as the example is written",
            _ones,
            _all_gather_compiled,
            _ONES_SEEN,
            _ONLY_MINDSPORE,
        ),
        _forward("ranks told apart", "the same with numbers that differ by rank and place", _own_numbers, _all_gather),
        _forward("mini-step", "_MiniStepAllGather, an accumulator as second input", _own_numbers, _mini_step),
        _forward("micro-step", "_MicroStepAllGather, an accumulator as second input", _own_numbers, _micro_step),
        Case(
            name="wrong group",
            shows="a group that is no str: TypeError",
            collective="all_gather",
            ranks=_SIZE,
            inputs=_ones,
            call=_wrong_group,
            oracle=lambda inputs: [[] for _ in inputs],
        ),
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
