"""isend, irecv, any source and batches, through the torch frontend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rank_numbers import check, make, numbers
from torch_world import KINDS, world
from wrong_calls import assert_refused, named

import shim.frontends.torch.distributed as dist
from shim.errors import ShimError

ONE = np.ones(2)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, 300_000])
def test_a_ring_that_sends_first(rank: int, world_size: int, kind: str, count: int) -> None:
    """Every rank begins to send before any receives; a long message fits into no buffer."""
    with world():
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        sending = dist.isend(make(kind, numbers(rank, count)), after)
        tensor = make(kind, np.zeros(count))
        receiving = dist.irecv(tensor, before)
        assert receiving.wait()
        assert sending.wait()
        check(kind, tensor, numbers(before, count))
        assert receiving.source_rank() == before
        assert receiving.is_completed()
        assert receiving.is_success()
        assert receiving.exception() is None
        assert receiving.result()[0] is tensor


@pytest.mark.ranks(1, 2)
@pytest.mark.parametrize("count", [3, 300_000])
def test_a_rank_that_sends_to_itself(rank: int, world_size: int, count: int) -> None:
    with world():
        sending, tensor = dist.isend(numbers(rank, count), rank), np.zeros(count)
        receiving = dist.irecv(tensor, rank)
        assert sending.wait()
        assert receiving.wait()
        check("numpy", tensor, numbers(rank, count))
        tensor = np.zeros(count)
        operations = [dist.P2POp(dist.irecv, tensor, rank), dist.P2POp(dist.isend, numbers(rank, count), rank)]
        assert all(work.wait() for work in dist.batch_isend_irecv(operations))
        check("numpy", tensor, numbers(rank, count))


@pytest.mark.ranks(3)
def test_receiving_from_any_rank(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group(list(reversed(range(world_size))), sort_ranks=False)
        if rank > 0:
            dist.send(numbers(rank, 3), 0, group, tag=5)
            dist.isend(numbers(rank, 4), 0, group, tag=6).wait()
            return
        seen = set()
        for _ in range(world_size - 1):
            tensor = np.zeros(3)
            source = dist.recv(tensor, group=group, tag=5)
            check("numpy", tensor, numbers(source, 3))
            seen.add(source)
        assert seen == set(range(1, world_size))
        for _ in range(world_size - 1):
            tensor = np.zeros(4)
            work = dist.irecv(tensor, group=group, tag=6)
            work.wait()
            source = dist.get_global_rank(group, work._source_rank())
            check("numpy", tensor, numbers(source, 4))
            seen.remove(source)
        assert not seen


@pytest.mark.ranks(2)
def test_messages_are_told_apart_by_tags(rank: int, world_size: int) -> None:
    with world():
        if rank == 0:
            works = [dist.isend(numbers(tag, 2), 1, tag=tag) for tag in (7, 8, 9)]
            assert all(work.wait() for work in works)
        else:
            for tag in (9, 8, 7):
                tensor = np.zeros(2)
                dist.irecv(tensor, 0, tag=tag).wait()
                check("numpy", tensor, numbers(tag, 2))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, -1])
def test_a_batch_with_every_rank(rank: int, world_size: int, kind: str, order: int) -> None:
    count = 100_000 // world_size
    with world():
        others = [other for other in range(world_size) if other != rank]
        into = {other: make(kind, np.zeros(count)) for other in others}
        operations = [
            *(dist.P2POp(dist.isend, make(kind, numbers(rank + 3 * other, count)), other) for other in others),
            *(dist.P2POp(dist.irecv, into[other], group_peer=other) for other in others),
        ]
        works = dist.batch_isend_irecv(operations[::order])
        assert len(works) == 2 * len(others)
        assert all(work.wait() for work in works)
        for other in others:
            check(kind, into[other], numbers(other + 3 * rank, count))


@pytest.mark.ranks(3)
def test_a_batch_in_a_subgroup(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        if rank == 1:
            operation = dist.P2POp(dist.irecv, np.zeros(3), 0, group)
            with pytest.warns(UserWarning, match="rank 1 does not belong"):
                assert dist.batch_isend_irecv([operation]) == []
            return
        tensor = np.zeros(3)
        send = dist.P2POp(dist.isend, numbers(rank, 3), 2 - rank, group, tag=4)
        receive = dist.P2POp(dist.irecv, tensor, group=group, tag=4, group_peer=send.group_peer)
        assert (send.peer, send.group_peer, send.tag, send.group) == (2 - rank, int(rank == 2), 4, group)
        assert (receive.peer, receive.op, receive.tensor is tensor) == (2 - rank, dist.irecv, True)
        assert "isend" in repr(send)
        assert "irecv" in repr(receive)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()
        check("numpy", tensor, numbers(2 - rank, 3))


@pytest.mark.ranks(2)
def test_a_batch_is_checked_before_any_of_it_begins(rank: int, world_size: int) -> None:
    with world():
        good = dist.P2POp(dist.isend, numbers(rank, 2), 1 - rank)
        bad = dist.P2POp(dist.isend, numbers(rank, 2), 1 - rank, tag=2**40)
        with pytest.raises(ShimError, match="tag"):
            dist.batch_isend_irecv([good, bad])
        tensor = np.zeros(3)  # would not fit the first message, had it been sent
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, numbers(rank, 3), 1 - rank), dist.P2POp(dist.irecv, tensor, 1 - rank)]
        )
        assert all(work.wait() for work in works)
        check("numpy", tensor, numbers(1 - rank, 3))


MISTAKES: dict[str, tuple[type[Exception], str, Any]] = {
    "isend to nobody": (ValueError, "dst", lambda rank, n: dist.isend(ONE)),
    "two names": (ValueError, "group_dst", lambda rank, n: dist.isend(ONE, 0, group_dst=0)),
    "outside": (ValueError, "9", lambda rank, n: dist.isend(ONE, 9)),
    "irecv outside": (
        ValueError,
        r"group_src must be in 0\.\.1, got 9",
        lambda rank, n: dist.irecv(np.ones(2), group_src=9),
    ),
    "recv from itself": (
        ValueError,
        "group_src must be another",
        lambda rank, n: dist.recv(np.ones(2), group_src=rank),
    ),
    "tag is text": (TypeError, "tag", lambda rank, n: dist.isend(ONE, (rank + 1) % n, tag="a")),
    "irecv tag is text": (TypeError, "tag", lambda rank, n: dist.irecv(np.ones(2), tag=1.5)),
    "no tensor": (TypeError, "tensor", lambda rank, n: dist.isend(None, (rank + 1) % n)),
    "list": (TypeError, "tensor", lambda rank, n: dist.irecv([np.ones(2)], (rank + 1) % n)),
    "op is text": (ValueError, "op", lambda rank, n: dist.P2POp("isend", ONE, (rank + 1) % n)),
    "op is send": (ValueError, "op", lambda rank, n: dist.P2POp(dist.send, ONE, (rank + 1) % n)),
    "op without a tensor": (TypeError, "tensor", lambda rank, n: dist.P2POp(dist.isend, 3, (rank + 1) % n)),
    "op without a peer": (ValueError, "peer", lambda rank, n: dist.P2POp(dist.isend, ONE)),
    "op with two peers": (ValueError, "group_peer", lambda rank, n: dist.P2POp(dist.isend, ONE, 1, group_peer=1)),
    "peer outside": (ValueError, "9", lambda rank, n: dist.P2POp(dist.isend, ONE, 9)),
    "group peer outside": (ValueError, "9", lambda rank, n: dist.P2POp(dist.isend, ONE, group_peer=9)),
    "batch is a tuple": (ValueError, "p2p_op_list", lambda rank, n: dist.batch_isend_irecv(())),
    "batch of numbers": (ValueError, "p2p_op_list", lambda rank, n: dist.batch_isend_irecv([3])),
    "batch is empty": (IndexError, "p2p_op_list", lambda rank, n: dist.batch_isend_irecv([])),
    "two groups": (
        ValueError,
        "one group",
        lambda rank, n: dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, ONE, (rank + 1) % n, group) for group in (None, dist.new_group())]
        ),
    ),
}


@pytest.mark.ranks(2)
def test_wrong_arguments(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in MISTAKES.items():
            with named(name):
                assert_refused(kind, words, wrong, rank, world_size)
                dist.barrier()


@pytest.mark.ranks(2)
def test_a_message_of_another_size(rank: int, world_size: int) -> None:
    with world():
        if rank == 0:
            work = dist.isend(np.ones(3), 1)
        else:
            work = dist.irecv(np.ones(2), 0)
            with pytest.raises(RuntimeError):
                work.wait()
            assert work.exception() is not None
            assert not work.is_success()
        dist.barrier()
        del work


@pytest.mark.ranks(2)
def test_a_work_of_no_receive_has_no_source(rank: int, world_size: int) -> None:
    with world():
        work = dist.all_reduce(np.ones(2), async_op=True)
        work.wait()
        with pytest.raises(RuntimeError, match="source"):
            work.source_rank()
