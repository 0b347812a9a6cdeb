"""Send, Receive, BatchISendIRecv and Barrier: what arrives."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import MODES, MODES_AND_DTYPES, Network, array_of, check, in_mode, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, MismatchError, RankError, ShimError, UnsupportedError
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.ops.operations import comm_ops


def dtype_of(kind: str) -> Any:
    if kind == "torch":
        import torch

        return torch.float32
    return np.float32 if kind == "numpy" else mindspore.float32


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", ["mindspore", "numpy", "torch"])
def test_send_and_receive(rank: int, world_size: int, kind: str) -> None:
    with world():
        for root in range(1, world_size):
            if rank == 0:
                check(kind, ops.Send(root, root)(make(kind, numbers(root, (2, 3)))), numbers(root, (2, 3)))
            if rank == root:
                check(kind, ops.Receive(root, 0, [2, 3], dtype_of(kind))(), numbers(root, (2, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize(("mode", "dtype"), MODES_AND_DTYPES)
def test_every_dtype(rank: int, world_size: int, mode: str, dtype: str, tmp_path: Path) -> None:
    with world(), in_mode(mode, tmp_path):
        tensor = make("mindspore", numbers(rank, (2, 3), dtype), dtype)
        if rank == 0:
            check("mindspore", Network(ops.Send(3, 1))(tensor), numbers(0, (2, 3), dtype), dtype)
        else:
            received = Network(ops.Receive(3, 0, [2, 3], tensor.dtype))()
            check("mindspore", received, numbers(0, (2, 3), dtype), dtype)


@pytest.mark.ranks(2)
def test_tags_tell_messages_apart(rank: int, world_size: int) -> None:
    with world():
        if rank == 0:
            for tag in (1, 2):
                ops.Send(tag, 1)(make("mindspore", numbers(tag, 3)))
        else:
            for tag in (2, 1):
                check("mindspore", ops.Receive(tag, 0, (3,), mindspore.float32)(), numbers(tag, 3))


@pytest.mark.ranks(3)
def test_ranks_are_those_of_the_group(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([1, 2])
        if rank == 1:
            ops.Send(0, 1, group)(make("mindspore", numbers(5, 3)))
        if rank == 2:
            check("mindspore", ops.Receive(0, 0, [3], mindspore.float32, group)(), numbers(5, 3))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_batch_isend_irecv(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    """Around the ring, both ways at once, tensors of different shapes and dtypes."""
    with world(), in_mode(mode, tmp_path):
        right, left = (rank + 1) % world_size, (rank - 1) % world_size
        batch = ops.BatchISendIRecv(
            ["isend", "irecv", "isend", "irecv"] if world_size > 2 else ["isend", "irecv", "irecv", "isend"],
            [right, left, left, right],
            [(2, 3), (4,)],
            (mindspore.float32, mindspore.int32),
        )
        first, second = make("mindspore", numbers(rank, (2, 3))), make("mindspore", numbers(rank, 4, "int32"))
        outputs = Network(batch)((first, second))
        assert len(outputs) == 4
        received = [numbers(left, (2, 3)), numbers(right, 4, "int32")]
        for place, expected in zip((1, 3 if world_size > 2 else 2), received, strict=True):
            check("mindspore", outputs[place], expected)
        check("mindspore", outputs[0], np.array(0, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_batch_of_other_tensors(rank: int, world_size: int, kind: str) -> None:
    with world():
        batch = ops.BatchISendIRecv(("isend", "irecv"), [1 - rank] * 2, [(3,)], (dtype_of(kind),))
        sent, received = batch([make(kind, numbers(rank, 3))])
        check(kind, received, numbers(1 - rank, 3))
        assert (tuple(sent.shape), float(sent)) == ((), 0.0)
        one_way = (
            ops.BatchISendIRecv(("isend",), [1])
            if rank == 0
            else ops.BatchISendIRecv(("irecv",), [0], [(3,)], (mindspore.float32,))
        )
        outputs = one_way((make("mindspore", numbers(0, 3)),) if rank == 0 else ())
        assert len(outputs) == 1
        check("mindspore", outputs[0], numbers(0, 3) if rank else np.array(0, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", MODES)
def test_a_batch_has_no_gradient(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    class Exchange(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
        def __init__(self) -> None:
            super().__init__()
            self.batch = ops.BatchISendIRecv(("isend", "irecv"), [1 - rank] * 2, [(3,)], (mindspore.float32,))

        def construct(self, tensor: Any) -> Any:
            return self.batch((tensor,))[1].sum()

    with world(), in_mode(mode, tmp_path), pytest.raises(UnsupportedError, match="has no gradient, as in MindSpore"):
        mindspore.grad(Exchange())(make("mindspore", numbers(rank, 3)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("mode", MODES)
def test_barrier(rank: int, world_size: int, mode: str, tmp_path: Path) -> None:
    """Nobody is past it before the last one has come, which the last one tells through a file."""

    class Waiting(mindspore.nn.Cell):  # type: ignore[misc]  # mypy does not see MindSpore
        def __init__(self) -> None:
            super().__init__()
            self.barrier = ops.Barrier()

        def construct(self, tensor: Any) -> Any:
            self.barrier()
            return (tensor * tensor).sum()

    with world(), in_mode(mode, tmp_path):
        common = Path(dist_broadcast(str(tmp_path)))
        network = mindspore.value_and_grad(Waiting())
        tensor = make("mindspore", numbers(rank, 3))
        (common / f"came_{rank}").touch()
        value, gradient = network(tensor)
        assert {path.name for path in common.glob("came_*")} == {f"came_{other}" for other in range(world_size)}
        assert float(value) == float((numbers(rank, 3) ** 2).sum())
        check("mindspore", gradient, 2 * numbers(rank, 3))
        check("mindspore", ops.Barrier()(), np.zeros(1, "float32"))


def dist_broadcast(text: str) -> str:
    """Return rank 0's *text*."""
    padded = np.frombuffer(text.encode().ljust(400), "uint8").copy()
    (result,) = ops.Broadcast(0)((padded,))
    return bytes(array_of(result)).decode().rstrip()


@pytest.mark.ranks(2)
def test_wrong_arguments(rank: int, world_size: int) -> None:
    f32 = mindspore.float32
    with world():
        for make_it in (
            lambda: ops.Send("0", 1),
            lambda: ops.Send(0, 1.0),
            lambda: ops.Send(0, 1, 5),
            lambda: ops.Send(0, 1, group_back=5),
            lambda: ops.Receive("0", 1, [2], f32),
            lambda: ops.Receive(0, "1", [2], f32),
            lambda: ops.Receive(0, 1, 2, f32),
            lambda: ops.Receive(0, 1, ["2"], f32),
            lambda: ops.Receive(0, 1, [2], "float32"),
            lambda: ops.Receive(0, 1, [2], f32, 5),
            lambda: ops.Barrier(5),
            lambda: ops.BatchISendIRecv("isend", [1]),
            lambda: ops.BatchISendIRecv(["isend"], 1),
            lambda: ops.BatchISendIRecv(["irecv"], [1], 2, [f32]),
            lambda: ops.BatchISendIRecv(["irecv"], [1], [(2,)], f32),
            lambda: ops.BatchISendIRecv(["isend"], [1], group=5),
        ):
            with pytest.raises(TypeError, match=r"mindspore\.ops\."):
                make_it()
        for make_it in (
            lambda: ops.BatchISendIRecv(["isend"], [1, 1]),
            lambda: ops.BatchISendIRecv(["irecv"], [1], [(2,)], []),
            lambda: ops.BatchISendIRecv(["irecv"], [1]),
            lambda: ops.BatchISendIRecv(["send"], [1]),
            lambda: ops.Receive(0, 1, [-2], f32),
        ):
            with pytest.raises(ArgumentError, match=r"mindspore\.ops\."):
                make_it()
        tensor = make("mindspore", numbers(rank, 3))
        with pytest.raises(RankError, match="dest_rank"):
            ops.Send(0, 2)(tensor)
        with pytest.raises(RankError, match="src_rank"):
            ops.Receive(0, 2, [3], f32)()
        with pytest.raises(RuntimeError, match="one for each 'isend'"):
            ops.BatchISendIRecv(["isend"], [1 - rank])((tensor, tensor))
        with pytest.raises(TypeError, match="one tensor or none"):
            ops.Receive(0, 1 - rank, [3], f32)(tensor, tensor)
        check("mindspore", ops.AllReduce()(tensor), numbers(0, 3) + numbers(1, 3))


@pytest.mark.ranks(2)
def test_messages_that_do_not_fit(rank: int, world_size: int) -> None:
    with world():
        if rank == 0:
            ops.Send(0, 1)(make("mindspore", numbers(0, 4)))
        else:
            with pytest.raises((MismatchError, ShimError), match="4 elements"):
                ops.Receive(0, 0, [3], mindspore.float32)()
        assert comm_ops.Send is ops.Send


@pytest.mark.ranks(2)
def test_a_message_refused_on_one_rank_does_not_disturb_collectives(rank: int, world_size: int) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, 3))
        if rank == 0:
            for call in (
                lambda: ops.Send(0, 1)(),
                lambda: ops.Send(0, 1)("tensor"),
                lambda: ops.BatchISendIRecv(["isend"], [1])(tensor),
                lambda: ops.NeighborExchange([1], [1], [(3,)], [(3,)], mindspore.float32)(tensor),
                lambda: ops.NeighborExchangeV2([-1] * 8, [0] * 4, [-1] * 8, [0] * 4, "NCHW")("tensor"),
            ):
                with pytest.raises(TypeError, match=r"mindspore\.ops\."):
                    call()
        check("mindspore", ops.AllReduce()(tensor), numbers(0, 3) + numbers(1, 3))


@pytest.mark.ranks(2)
def test_copies(rank: int, world_size: int) -> None:
    with world():
        tensor, other = make("mindspore", numbers(rank, 3)), 1 - rank
        exchange = ops.NeighborExchange([other], [other], [(3,)], [(3,)], mindspore.float32)
        batch = ops.BatchISendIRecv(["isend", "irecv"], [other] * 2, [(3,)], [mindspore.float32])
        for each in (exchange, batch):
            check("mindspore", copy.deepcopy(each)((tensor,))[-1], numbers(other, 3))
        copied = copy.deepcopy(ops.AlltoAllV(block_size=3))
        assert (copied.block_size, type(copied).__name__, copied.group) == (3, "AlltoAllV", "hccl_world_group")
        copied = copy.deepcopy(ops.Receive(1, other, [3], mindspore.float32))
        assert (copied.sr_tag, copied.shape, copied.dtype) == (1, (3,), mindspore.float32)
