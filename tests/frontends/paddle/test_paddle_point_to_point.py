"""isend, irecv and batches of them, in any order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from paddle_world import KINDS, VERSIONS, world
from rank_numbers import check, make, numbers
from wrong_calls import assert_refused

from shim.errors import ShimError
from shim.frontends.paddle_2.distributed.communication.batch_isend_irecv import _with_batch_p2p_guard
from shim.frontends.paddle_3.distributed.communication.batch_isend_irecv import _coalescing_manager

LONG = 200_000  # elements; more than the engine holds for a receiver that is not there yet


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_rank_sends_to_the_next_first(rank: int, world_size: int, version: str, kind: str) -> None:
    with world(version) as dist:
        before, after = (rank - 1) % world_size, (rank + 1) % world_size
        received = make(kind, np.zeros(LONG))
        sending = dist.isend(make(kind, numbers(rank, LONG)), after)
        receiving = dist.irecv(received, before)
        assert (receiving.is_sync(), receiving.wait(), sending.wait()) == (False, True, True)
        assert receiving.is_completed()
        check(kind, received, numbers(before, LONG))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 2)])
def test_shapes(rank: int, shape: tuple[int, ...]) -> None:
    import paddle

    with world() as dist:
        if rank == 0:
            dist.isend(paddle.to_tensor(numbers(0, shape)), 1).wait()
        else:
            received = paddle.to_tensor(np.zeros(shape))
            dist.irecv(received, 0).wait()
            check("paddle", received, numbers(0, shape))


@pytest.mark.ranks(2)
def test_strided_tensors(rank: int) -> None:
    import paddle

    with world() as dist:
        if rank == 0:
            dist.send(paddle.to_tensor(numbers(0, (4, 3))).t()[::2], 1)
        else:
            whole = paddle.zeros([4, 2], "float64")
            dist.irecv(whole.t(), 0).wait()
            check("paddle", whole, numbers(0, (4, 3))[:, ::2])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_in_every_order(rank: int, world_size: int, version: str, kind: str) -> None:
    with world(version) as dist:
        before, after = (rank - 1) % world_size, (rank + 1) % world_size
        for order in itertools.permutations(range(4)):
            received = [make(kind, np.zeros(LONG // 100)) for _ in range(2)]
            operations = [
                dist.P2POp(dist.isend, make(kind, numbers(rank, LONG // 100)), after),
                dist.P2POp(dist.irecv, received[0], before),
                dist.P2POp(dist.isend, make(kind, numbers(rank + 9, LONG // 100)), before),
                dist.P2POp(dist.irecv, received[1], after),
            ]
            if world_size == 2 and order.index(0) > order.index(2):
                continue  # the two messages go to the same rank, so that their order is which they are
            if world_size == 2 and order.index(1) > order.index(3):
                continue
            tasks = dist.batch_isend_irecv([operations[index] for index in order])
            assert [task.wait() for task in tasks] == [True] * 4
            check(kind, received[0], numbers(before, LONG // 100))
            check(kind, received[1], numbers(after + 9, LONG // 100))


@pytest.mark.ranks(3)
def test_a_batch_that_receives_into_what_it_sends(rank: int, world_size: int) -> None:
    with world() as dist:
        tensor = numbers(rank, LONG)
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        operations = [dist.P2POp(dist.irecv, tensor, before), dist.P2POp(dist.isend, tensor, after)]
        for task in dist.batch_isend_irecv(operations):
            task.wait()
        check("numpy", tensor, numbers(before, LONG))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("taken", ["_clear_data()", "get_tensor()._clear()", "set_(paddle.ones([1]))"])
def test_memory_that_is_taken_from_a_tensor_on_its_way(rank: int, taken: str) -> None:
    import paddle

    with world() as dist:
        apart, tensor = dist.new_group(), paddle.full([LONG], rank + 1.0)
        if rank == 0:
            task = dist.isend(tensor, 1)
            eval("tensor." + taken, {"tensor": tensor, "paddle": paddle})
            garbage = paddle.full([LONG], -1.0)
            dist.barrier(apart)
            task.wait()
            assert float(garbage.max()) == -1.0
        else:
            dist.barrier(apart)
            dist.recv(tensor, 0)
            assert float(tensor.min()) == float(tensor.max()) == 1.0


@pytest.mark.ranks(4)
def test_every_rank_to_every_other_in_one_batch(rank: int, world_size: int) -> None:
    with world() as dist:
        others = [other for other in range(world_size) if other != rank]
        received = {other: np.zeros(LONG) for other in others}
        sends = [dist.P2POp(dist.isend, numbers(10 * rank + other, LONG), other) for other in others]
        receives = [dist.P2POp(dist.irecv, received[other], other) for other in others]
        for task in dist.batch_isend_irecv(sends + receives):
            task.wait()
        for other in others:
            check("numpy", received[other], numbers(10 * other + rank, LONG))


@pytest.mark.ranks(3)
def test_a_batch_in_groups(rank: int) -> None:
    with world() as dist:
        group, everyone = dist.new_group([0, 2]), dist.new_group()
        other = 2 - rank
        if rank != 1:
            received = [np.zeros(3), np.zeros(3)]
            operations = [
                dist.P2POp(dist.isend, numbers(rank, 3), other, group),
                dist.P2POp(dist.isend, numbers(rank + 5, 3), other, everyone),
                dist.P2POp(dist.irecv, received[1], other, everyone),
                dist.P2POp(dist.irecv, received[0], other, group),
            ]
            assert len(dist.batch_isend_irecv(operations)) == 4
            dist.wait(received[0], group)
            dist.wait(received[1], everyone)
            check("numpy", received[0], numbers(other, 3))
            check("numpy", received[1], numbers(other + 5, 3))
        else:
            with pytest.warns(UserWarning, match="does not belong") as caught:
                assert dist.batch_isend_irecv([dist.P2POp(dist.isend, np.ones(1), 0, group)]) is None
            assert caught[0].filename == __file__
            for call in (lambda: dist.isend(np.ones(1), 0, group), lambda: dist.irecv(np.ones(1), 0, group)):
                with pytest.warns(UserWarning, match="does not belong") as caught:
                    assert call() is None
                assert caught[0].filename == __file__
        dist.barrier()


@pytest.mark.ranks(2)
def test_wrong_calls(rank: int) -> None:
    with world() as dist:
        one = np.ones(2)
        right = dist.P2POp(dist.isend, one, 1 - rank)
        assert (right.op, right.tensor, right.peer, right.group) == (dist.isend, one, 1 - rank, dist.get_group())
        nccl = dist.new_group(backend="nccl")
        for kind, wrong, words in (
            (ValueError, lambda: dist.isend(one, rank), "dst"),
            (ValueError, lambda: dist.irecv(one, rank), "src"),
            (ValueError, lambda: dist.irecv(one), "src must be an integer, got None"),
            (ValueError, lambda: dist.isend(one, 5), "rank 5"),
            (ValueError, lambda: dist.isend([1.0], 1 - rank), "tensor"),
            (RuntimeError, lambda: dist.P2POp(dist.send, one, 1 - rank), "op must be"),
            (RuntimeError, lambda: dist.P2POp("isend", one, 1 - rank), "op must be"),
            (RuntimeError, lambda: dist.batch_isend_irecv([]), "p2p_op_list"),
            (RuntimeError, lambda: dist.batch_isend_irecv((right,)), "p2p_op_list"),
            (RuntimeError, lambda: dist.batch_isend_irecv([right, None]), "p2p_op_list"),
            (
                RuntimeError,
                lambda: dist.batch_isend_irecv([right, dist.P2POp(dist.irecv, one, 1 - rank, nccl)]),
                "GLOO and NCCL",
            ),
            (ValueError, lambda: dist.batch_isend_irecv([right, dist.P2POp(dist.irecv, one, rank)]), "peer"),
        ):
            assert_refused(kind, words, wrong)
        received = np.zeros(3)  # nothing of the last batch was sent, or this would take it
        tasks = [dist.isend(numbers(rank, 3), 1 - rank), dist.irecv(received, 1 - rank)]
        assert all(task.wait() for task in tasks)
        check("numpy", received, numbers(1 - rank, 3))


def test_an_operation_needs_a_group() -> None:
    dist = VERSIONS["3"]
    with pytest.raises(RuntimeError, match="init_parallel_env"):
        dist.P2POp(dist.isend, np.ones(1), 1)


@pytest.mark.ranks(2)
def test_coalescing_changes_nothing(rank: int) -> None:
    with world() as dist:
        tasks: list[Any] = []
        received = np.zeros(3)
        with _coalescing_manager(dist.get_group(), tasks), _with_batch_p2p_guard("NCCL"):
            tasks.append(dist.isend(numbers(rank, 3), 1 - rank))
            tasks.append(dist.irecv(received, 1 - rank))
        assert [task.wait() for task in tasks] == [True, True]
        check("numpy", received, numbers(1 - rank, 3))


@pytest.mark.ranks(1)
def test_what_cannot_be_coalesced() -> None:
    with pytest.raises(RuntimeError, match=r"^paddle\.distributed\._coalescing_manager: .*\n.*init_parallel_env"):
        _coalescing_manager(None)
    with world():
        for wrong, words in (
            (lambda: _coalescing_manager("world"), "_coalescing_manager: group must be a Group"),
            (lambda: _coalescing_manager(None, [1]), "_coalescing_manager: tasks must be a list of tasks"),
            (lambda: _with_batch_p2p_guard(None), "_with_batch_p2p_guard: backend must be a str"),
        ):
            assert_refused(TypeError, words, wrong)


@pytest.mark.ranks(2)
def test_a_message_of_another_size(rank: int) -> None:
    with world() as dist:
        if rank == 0:
            assert dist.isend(np.ones(3), 1).wait() is True  # the engine holds so much for a receiver to come
            dist.send(numbers(0, 3), 1)
        else:
            task = dist.irecv(np.zeros(2), 0)
            with pytest.raises(ShimError, match="3 elements"):
                task.wait()
            assert task.is_completed()
            received = np.zeros(3)
            dist.recv(received, 0)  # nothing of the message is left
            check("numpy", received, numbers(0, 3))
        dist.barrier()


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("first", ["mine", "others"])
def test_a_batch_does_what_it_can_where_some_groups_are_others(rank: int, version: str, first: str) -> None:
    with world(version) as dist:
        others = dist.new_group([1, 2])
        received = np.zeros(3)
        if rank == 0:
            ops = [dist.P2POp(dist.irecv, received, 1), dist.P2POp(dist.isend, numbers(0, 3), 1, others)]
            with pytest.warns(UserWarning, match="not"):
                tasks = dist.batch_isend_irecv(ops if first == "mine" else ops[::-1])
            assert [task.wait() for task in tasks] == [True]
            check("numpy", received, numbers(1, 3))
        elif rank == 1:
            dist.send(numbers(1, 3), 0)
