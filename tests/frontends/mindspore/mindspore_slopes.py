"""What a gradient must be: the slope of the sum of all ranks' losses, found by moving one element a little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore_world import make, numbers

Array = Any
Model = Callable[[Sequence[Array]], Sequence[Array]]  # from all ranks' inputs to all ranks' outputs


class Weighted(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """The weighted sum of what *primitive* returns for twice the tensor, and for *more* arguments."""

    def __init__(self, primitive: Any, weights: Array, *more: Any) -> None:
        super().__init__()
        self.primitive = primitive
        self.weights = mindspore.Tensor(weights)
        self.more = more

    def construct(self, tensor: Any) -> Any:
        return (self.primitive(tensor * 2, *self.more) * self.weights).sum()


class Accumulating(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """The weighted sum of what *primitive* returns for a tensor and an accumulator."""

    def __init__(self, primitive: Any, weights: Array, accumulated: Array) -> None:
        super().__init__()
        self.primitive = primitive
        self.weights = mindspore.Tensor(weights)
        self.accumulator = mindspore.Parameter(mindspore.Tensor(accumulated), name="accumulator", requires_grad=False)

    def construct(self, tensor: Any) -> Any:
        return (self.primitive(tensor, self.accumulator) * self.weights).sum()


def weights_for(rank: int, output: Array) -> Array:
    """Return weights for a rank's *output* that differ by rank and place."""
    return (numbers(rank, output.shape) % 7 + rank + 1).astype("float32")


def slope(model: Model, inputs: Sequence[Array], rank: int, step: float = 2.0**-10) -> Array:
    """Return the gradient of the sum of all ranks' ``Weighted`` losses with respect to *rank*'s input."""
    inputs = [each.astype("float64") for each in inputs]

    def loss(moved: Array) -> float:
        outputs = model([2 * (moved if other == rank else each) for other, each in enumerate(inputs)])
        return float(sum((weights_for(other, output) * output).sum() for other, output in enumerate(outputs)))

    found = np.zeros(inputs[rank].shape)
    for place in np.ndindex(found.shape):
        there = np.zeros(found.shape)
        there[place] = step
        found[place] = (loss(inputs[rank] + there) - loss(inputs[rank] - there)) / (2 * step)
    return found


def check_slope(primitive: Any, model: Model, inputs: Sequence[Array], rank: int, *more: Any) -> None:
    """Assert that value and gradient of *primitive*'s ``Weighted`` loss on this *rank* are those of *model*."""
    output = model([2 * each for each in inputs])[rank]
    network = Weighted(primitive, weights_for(rank, output), *more)
    value, gradient = mindspore.value_and_grad(network)(make("mindspore", inputs[rank].astype("float32")))
    np.testing.assert_allclose(value.asnumpy(), (weights_for(rank, output) * output).sum(), rtol=1e-5)
    expected = slope(model, inputs, rank)
    assert gradient.shape == expected.shape
    np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=2e-4, atol=2e-4)
