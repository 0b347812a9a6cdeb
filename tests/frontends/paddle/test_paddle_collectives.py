"""What neither the tables nor Paddle beside this ask of the Paddle frontends' collectives, with numpy's and paddle's tensors."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from paddle_world import KINDS, VERSIONS, world
from rank_numbers import check, make, numbers


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_gather_of_nothing_fills_an_empty_list(rank: int, world_size: int, kind: str) -> None:
    with world() as dist:
        outputs: list[Any] = []
        mine = make(kind, numbers(rank, (0, 2)))
        dist.all_gather(outputs, mine)
        assert [type(output) for output in outputs] == [type(mine)] * world_size
        for other, output in enumerate(outputs):
            check(kind, output, numbers(other, (0, 2)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequence", [list, tuple])
def test_all_gather_fills_tensors_in_place(rank: int, world_size: int, kind: str, sequence: type) -> None:
    with world() as dist:
        tensors = [make(kind, np.zeros((2, 3))) for _ in range(world_size)]
        outputs = sequence(tensors)
        dist.all_gather(outputs, make(kind, numbers(rank, (2, 3))))
        assert len(outputs) == world_size
        for other, tensor in enumerate(tensors):
            assert outputs[other] is tensor
            check(kind, tensor, numbers(other, (2, 3)))


@pytest.mark.ranks(2)
def test_an_empty_list_is_filled_by_an_asynchronous_call_too(rank: int, world_size: int) -> None:
    with world() as dist:
        outputs: list[Any] = []
        task = dist.all_gather(outputs, numbers(rank, 3), sync_op=False)
        assert not task.is_sync()
        assert task.wait() is True
        assert task.wait() is True
        assert task.is_completed()
        assert len(outputs) == world_size
        for other, output in enumerate(outputs):
            check("numpy", output, numbers(other, 3))


@pytest.mark.ranks(2)
def test_strided_tensors(rank: int, world_size: int) -> None:
    import paddle

    with world() as dist:
        whole = paddle.zeros([4], "float64")
        view = whole[::2]
        dist.all_gather([view[:1], view[1:]], paddle.to_tensor(numbers(rank, 1)))
        check("paddle", whole, np.array([numbers(0, 1)[0], 0, numbers(1, 1)[0], 0]))


def rows_between(sender: int, receiver: int) -> int:
    """Different for every pair, and nothing from a rank to itself."""
    return 0 if sender == receiver else 1 + sender + 2 * receiver


def part(sender: int, receiver: int, dtype: str) -> np.ndarray:
    return numbers(sender + 7 * receiver, (rows_between(sender, receiver), 2), dtype)


def in_order(version: str, output: Any, source: Any) -> tuple[Any, Any]:
    """The two first arguments of alltoall and alltoall_single in the order of each version."""
    return (source, output) if version == "2" else (output, source)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_alltoall_in_place(rank: int, world_size: int, version: str, kind: str, dtype: str) -> None:
    with world(version) as dist:
        inputs = [make(kind, part(rank, other, dtype)) for other in range(world_size)]
        outputs = [make(kind, np.zeros((rows_between(other, rank), 2), dtype)) for other in range(world_size)]
        assert dist.alltoall(*in_order(version, outputs, inputs)).wait() is True
        for other, output in enumerate(outputs):
            check(kind, output, part(other, rank, dtype))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_alltoall_of_two_tensors(rank: int, world_size: int, version: str) -> None:
    with world(version) as dist:
        output = np.zeros((world_size, 2))
        dist.alltoall(*in_order(version, output, numbers(rank, (world_size, 2))))
        check("numpy", output, np.stack([numbers(other, (world_size, 2))[rank] for other in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_alltoall_single_with_split_sizes(rank: int, world_size: int, version: str, kind: str, dtype: str) -> None:
    with world(version) as dist:
        sent = [part(rank, other, dtype) for other in range(world_size)]
        received = [part(other, rank, dtype) for other in range(world_size)]
        output = make(kind, np.zeros((sum(map(len, received)), 2), dtype))
        source = make(kind, np.concatenate(sent))
        in_splits, out_splits = [len(rows) for rows in sent], [len(rows) for rows in received]
        task = dist.alltoall_single(*in_order(version, output, source), in_splits, out_splits, sync_op=False)
        assert task.wait() is True
        check(kind, output, np.concatenate(received))
        check(kind, source, np.concatenate(sent))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["numpy", "paddle"])
def test_alltoall_single_without_dimensions_where_nothing_is_sent(
    rank: int, world_size: int, version: str, kind: str
) -> None:
    """As programs have it with parts of variable length, whose rank has none."""
    with world(version) as dist:
        output, source = make(kind, np.array(7.0)), make(kind, np.array(1.0 + rank))
        dist.alltoall_single(*in_order(version, output, source), [0, 0], [0, 0])
        dist.stream.alltoall_single(output, source, [0, 0], [0, 0])
        check(kind, output, np.array(7.0))
        rows = np.zeros(2), np.array([3.0, 4.0])  # rank 1 sends, and rank 0 has nothing to
        output, source = (
            make(kind, one) for one in ((rows[0], np.array(7.0)) if rank == 0 else (np.array(7.0), rows[1]))
        )
        in_splits, out_splits = ([0, 0], [0, 2]) if rank == 0 else ([2, 0], [0, 0])
        dist.alltoall_single(*in_order(version, output, source), in_splits, out_splits)
        check(kind, output, rows[1] if rank == 0 else np.array(7.0))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("use_calc_stream", [True, False])
def test_wait_waits_for_what_was_started(rank: int, world_size: int, use_calc_stream: bool) -> None:
    with world() as dist:
        tensors = [numbers(rank + turn, 20000) for turn in range(4)]
        tasks = [dist.all_reduce(tensor, sync_op=False) for tensor in tensors]
        assert dist.wait(tensors[-1], use_calc_stream=use_calc_stream) is None
        assert all(task.is_completed() for task in tasks)
        for turn, tensor in enumerate(tensors):
            check("numpy", tensor, sum(numbers(other + turn, 20000) for other in range(world_size)))
        dist.wait(tensors[0])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sync_op", [True, False])
def test_gather_and_scatter_with_every_root(rank: int, world_size: int, kind: str, sync_op: bool) -> None:
    with world("2") as dist:
        for root in range(world_size):
            gathered: list[Any] | None = [] if rank == root else None
            dist.gather(make(kind, numbers(rank, (2, 2))), gathered, root, sync_op=sync_op).wait()
            for other, tensor in enumerate(gathered or []):
                check(kind, tensor, numbers(other, (2, 2)))
            back = make(kind, np.zeros((2, 2)))
            dist.scatter(back, gathered, root, sync_op=sync_op).wait()
            check(kind, back, numbers(rank, (2, 2)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sync_op", [True, False])
def test_send_and_recv_in_a_group(rank: int, kind: str, sync_op: bool) -> None:
    with world() as dist:
        group = dist.new_group([0, 2])
        if rank == 0:
            dist.send(make(kind, numbers(0, 4)), 2, group, sync_op).wait()
        elif rank == 2:
            tensor = make(kind, np.zeros(4))
            task = dist.recv(tensor, 0, group, sync_op)
            dist.wait(tensor, group)
            assert task.is_completed()
            check(kind, tensor, numbers(0, 4))
        dist.barrier()


@pytest.mark.ranks(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_world_of_one(version: str) -> None:
    with world(version) as dist:
        mine, output = numbers(0, (2, 3)), np.zeros((2, 3))
        gathered: list[Any] = []
        exchanged: list[Any] = []
        dist.all_reduce(mine, dist.ReduceOp.PROD)
        dist.broadcast(mine, 0)
        dist.all_gather(gathered, mine)
        dist.alltoall(*in_order(version, exchanged, gathered))
        dist.alltoall_single(*in_order(version, output, exchanged[0]))
        dist.barrier()
        for seen in (mine, gathered[0], exchanged[0], output):
            check("numpy", seen, numbers(0, (2, 3)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("is_held", [True, False])
def test_a_gradient_of_what_is_overwritten_while_nobody_waits(rank: int, world_size: int, is_held: bool) -> None:
    """The end of a call counts as a write when it has come, whether or not its task is still there."""
    import paddle

    with world() as dist:
        for late in range(world_size):  # begins when the other has kept its tensor
            if rank == late:
                dist.recv(paddle.ones([1]), 1 - rank)
            weight, kept = paddle.ones([2]), paddle.full([2], 1.0 + rank)
            weight.stop_gradient = False
            task = dist.all_reduce(kept, sync_op=False)
            loss = (weight * kept).sum()
            if not is_held:
                del task
            if rank != late:
                dist.send(paddle.ones([1]), late)
                while kept.inplace_version < 2:
                    time.sleep(0.001)
                with pytest.raises(RuntimeError, match="tensor_version"):
                    loss.backward()
                check("paddle", kept, np.full(2, 3.0, np.float32))
            dist.barrier()
