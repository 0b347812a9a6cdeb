"""Send and Receive where a gradient is recorded: what comes back, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore.graph.api import _pynative_executor
from mindspore_world import MODES, check, in_mode, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import UnsupportedError
from shim.frontends.mindspore import ops


class Sending(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """The loss of a rank that sends and goes on with what it has sent, as the documentation does."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.send = ops.Send(*arguments)
        self.depend = mindspore.ops.Depend()

    def construct(self, tensor: Any) -> Any:
        doubled = tensor * 2
        return (self.depend(doubled, self.send(doubled)) * 3).sum()


class Receiving(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """The loss of a rank whose input is also what it asks the gradient of what it receives through."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.receive = ops.Receive(*arguments)

    def construct(self, tensor: Any) -> Any:
        received = self.receive(tensor)
        return (received * received * tensor).sum()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [6, 300_000])
def test_gradients_travel_back(rank: int, world_size: int, mode: str, size: int, tmp_path: Path) -> None:
    """Rank 0's x is doubled and sent; rank 1 has the sum of y times the square of what it gets, which also rank 0's loss adds to."""
    back = dist
    with world(), in_mode(mode, tmp_path):
        group_back = back.new_group([0, 1]) if world_size == 3 and rank < 2 else "hccl_world_group"
        x, y = numbers(0, size) % 11, numbers(1, size) % 5
        for _ in range(2):
            if rank == 0:
                network = Sending(4, 1, "hccl_world_group", group_back)
                gradient = mindspore.grad(network)(make("mindspore", x))
                check("mindspore", gradient, 2 * (3 + 2 * y * (2 * x)))
            elif rank == 1:
                network = Receiving(4, 0, [size], mindspore.float32, "hccl_world_group", group_back)
                gradient = mindspore.grad(network)(make("mindspore", y))
                check("mindspore", gradient, (2 * x) ** 2)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_the_copy_that_send_returns_has_its_own_gradient_too(
    rank: int, world_size: int, mode: str, tmp_path: Path
) -> None:
    class Relay(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
        def __init__(self) -> None:
            super().__init__()
            self.send = ops.Send(0, 1)

        def construct(self, tensor: Any) -> Any:
            return (self.send(tensor * 2) * 5).sum()

    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(rank, 3))
        if rank == 0:
            received = 2 * numbers(0, 3)
            check("mindspore", mindspore.grad(Relay())(tensor), 2 * (5 + 2 * received * numbers(1, 3)))
        else:
            mindspore.grad(Receiving(0, 0, [3], mindspore.float32))(tensor)


@pytest.mark.ranks(2)
def test_in_pynative_mode_what_send_returns_need_not_be_used(rank: int, world_size: int) -> None:
    send = None

    def loss(tensor: Any) -> Any:
        doubled = tensor * 2
        send(doubled)
        return doubled.sum()

    with world():
        send, tensor = ops.Send(0, 1 - rank), make("mindspore", numbers(rank, 3))
        weight = mindspore.Parameter(tensor, name="weight")
        for _ in range(2):
            if rank == 0:
                check("mindspore", mindspore.grad(loss)(tensor), 2 * (1 + 4 * numbers(0, 3) * numbers(1, 3)))
                check("mindspore", mindspore.grad(lambda: loss(weight), None, weight)(), np.full(3, 4, "float32"))
            else:
                mindspore.grad(Receiving(0, 0, [3], mindspore.float32))(tensor)
                received = ops.Receive(0, 0, [3], mindspore.float32)()
                ops.Send(0, 0)(mindspore.ops.ones_like(received))


@pytest.mark.ranks(2)
def test_a_send_in_a_step_that_failed_asks_nothing_of_the_next(rank: int, world_size: int) -> None:
    def failing(tensor: Any) -> Any:
        ops.Send(0, 1)(tensor)
        raise KeyError("a bad batch")

    with world():
        tensor = make("mindspore", numbers(0, 3))
        if rank == 0:
            with pytest.raises(KeyError):
                mindspore.grad(failing)(tensor)
            _pynative_executor.clear_res()  # MindSpore goes on recording after an error
            check("mindspore", mindspore.grad(lambda x: (x * 5).sum())(tensor), np.full(3, 5, "float32"))
        else:
            check("mindspore", ops.Receive(0, 0, [3], mindspore.float32)(), numbers(0, 3))


class Data(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
    """The loss of a rank that takes what it receives for a constant: with *inputs*, none or one."""

    def __init__(self, *inputs: Any) -> None:
        super().__init__()
        self.receive = ops.Receive(0, 0, [3], mindspore.float32)
        self.inputs = inputs

    def construct(self, tensor: Any) -> Any:
        return (self.receive(*self.inputs) * tensor).sum()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_received_for_a_constant_is_one(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        if rank == 0:
            ops.Send(0, 1)(make("mindspore", numbers(7, 3)))
        else:
            network = Data(mindspore.Tensor([0.0]))
            check("mindspore", mindspore.grad(network)(make("mindspore", numbers(1, 3))), numbers(7, 3))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_receiving_without_a_tensor_is_refused_in_a_gradient(
    rank: int, world_size: int, mode: str, tmp_path: Path
) -> None:
    """The sender may be waiting for the gradient of what it has sent, and would for ever."""
    with world(), in_mode(mode, tmp_path):
        if rank == 0:
            ops.Send(0, 1)(make("mindspore", numbers(7, 3)))
        else:
            with pytest.raises(
                UnsupportedError, match=r"(?s)ops\.Receive: must be called with a tensor.*\nPass one whose"
            ):
                mindspore.grad(Data())(make("mindspore", numbers(1, 3)))
            _pynative_executor.clear_res()
            check(
                "mindspore", Data()(make("mindspore", numbers(1, 3))), np.array((numbers(7, 3) * numbers(1, 3)).sum())
            )
