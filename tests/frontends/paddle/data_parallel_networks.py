"""Networks for the tests of DataParallel, and what trains them. Imported where the tests run, as it imports paddle."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn

from shim.frontends.paddle_3 import DataParallel

__all__ = ["DataParallel", "Plain", "assert_same_state", "batch", "made", "nn", "paddle", "part", "trained"]

ROWS = 12  # of the whole batch: equal parts for 2 and for 3 ranks
STEPS = 3


class Plain(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.second = nn.Linear(5, 1)

    def forward(self, x: Any) -> Any:
        return self.second(paddle.tanh(self.first(x)))


class Shared(Plain):
    """One layer is used twice, and one parameter belongs to two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.square = nn.Linear(5, 5)
        self.same = nn.Linear(5, 5)
        self.same.weight = self.square.weight

    def forward(self, x: Any) -> Any:
        y = self.same(self.square(self.square(paddle.tanh(self.first(x)))))
        return self.second(y)


class Frozen(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.first.weight.stop_gradient = True


class Unused(Plain):
    """A layer that no rank uses: its gradients stay None, and its parameters what they are."""

    def __init__(self) -> None:
        super().__init__()
        self.never = nn.Linear(3, 3)


class Doubles(Plain):
    """Parameters of two dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.second.to(dtype="float64")

    def forward(self, x: Any) -> Any:
        return self.second(paddle.tanh(self.first(x)).astype("float64")).astype("float32")


class InADict(Plain):
    def forward(self, x: Any) -> Any:
        return {"answer": [super().forward(x)], "step": 1}


class InAnObject(Plain):
    """The output is hidden, so that only the parameters tell of the backward."""

    def forward(self, x: Any) -> Any:
        return type("Answer", (), {"hidden": super().forward(x)})()


def answer_of(output: Any) -> Any:
    if isinstance(output, dict):
        return output["answer"][0]
    return getattr(output, "hidden", output)


def batch() -> tuple[Any, Any]:
    numbers = np.random.default_rng(7)
    return numbers.normal(size=(ROWS, 4)).astype("float32"), numbers.normal(size=(ROWS, 1)).astype("float32")


def part(array: Any, rank: int, world_size: int) -> Any:
    rows = ROWS // world_size
    return paddle.to_tensor(array[rank * rows : (rank + 1) * rows])


def made(network: str, seed: int) -> Any:
    """Make the class called *network*, with parameters that follow from *seed*."""
    paddle.seed(seed)
    return globals()[network]()


def trained(model: Any, inputs: Any, targets: Any) -> list[float]:
    """Train *model* and return the loss of each step."""
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters(), weight_decay=0.1)
    losses = []
    for _ in range(STEPS):
        loss = nn.functional.mse_loss(answer_of(model(inputs)), targets)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        losses.append(float(loss))
    return losses


def assert_same_state(model: Any, expected: Any) -> None:
    state, wanted = model.state_dict(), expected.state_dict()
    assert list(state) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(state[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
