"""A batch of calls has ended when all of them have, none waits for one before it, and none reads what another has written."""

from __future__ import annotations

import time

import numpy as np
import pytest
from core_world import world

from shim.core import calls
from shim.core.callers import Caller
from shim.core.reduce_ops import ReduceOp
from shim.core.work import Batch
from shim.errors import CollectiveTimeoutError, ShimError

ME = Caller("test")


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("started", [False, True])
def test_long_messages_cross_when_every_rank_sends_first(rank: int, world_size: int, started: bool) -> None:
    with world() as group:
        received = {other: np.zeros(300_000) for other in range(world_size) if other != rank}
        sends = [calls.send(ME, group, np.full(300_000, float(rank)), other) for other in received]
        batch = Batch([*sends, *(calls.receive(ME, group, received[other], other) for other in received)])
        if started:
            assert batch.start() is batch
        batch.wait()
        assert batch.is_completed()
        assert batch.exception() is None
        for other, tensor in received.items():
            assert (tensor == other).all()


@pytest.mark.ranks(2)
def test_the_first_error_is_raised_when_all_have_ended(rank: int, world_size: int) -> None:
    with world() as group:
        good = np.zeros(3)
        if rank == 0:
            Batch([calls.send(ME, group, np.zeros(2), 1, 1), calls.send(ME, group, np.ones(3), 1, 2)]).wait()
        else:
            batch = Batch([calls.receive(ME, group, np.zeros(3), 0, 1), calls.receive(ME, group, good, 0, 2)])
            with pytest.raises(ShimError, match="2 elements"):
                batch.wait()
            assert isinstance(batch.exception(), ShimError)
            assert (good == 1).all()


@pytest.mark.ranks(2)
def test_the_timeout_is_that_of_all_together(rank: int, world_size: int) -> None:
    with world() as group:
        if rank == 0:
            received = [np.zeros(3) for _ in range(20)]
            batch = Batch([calls.receive(ME, group, each, 1, tag) for tag, each in enumerate(received)])
            begin = time.monotonic()
            with pytest.raises(CollectiveTimeoutError):
                batch.wait(0.2)
            assert 0.2 <= time.monotonic() - begin < 3.5  # and not 20 times as long
            assert not batch.is_completed()
        calls.barrier(ME, group).wait()
        if rank == 1:
            Batch([calls.send(ME, group, np.full(3, float(tag)), 0, tag) for tag in range(20)]).wait()
        else:
            batch.wait(30.0)
            assert [each.tolist() for each in received] == [[float(tag)] * 3 for tag in range(20)]


LENGTHS = [6, 300_000]  # within an arrival line or a channel, and far beyond


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("started", [False, True])
def test_collectives_of_tensors_that_share_memory(rank: int, world_size: int, length: int, started: bool) -> None:
    """Each reads what was there before the batch, and they write in their order."""
    with world() as group:
        memory = np.arange(length, dtype=float) + 10 * rank
        wanted = sum(np.arange(length, dtype=float) + 10 * other for other in range(world_size))
        views = [memory, memory, memory[: length // 2], memory[length // 3 :], memory[::2], memory[::-1]]
        apart = np.ones(3)
        batch = Batch([calls.all_reduce(ME, group, each, each, ReduceOp.SUM) for each in [*views, apart]])
        if started:
            batch.start()
        batch.wait()
        assert (memory == wanted).all()
        assert (apart == world_size).all()
        calls.all_reduce(ME, group, memory, memory, ReduceOp.MAX, now=True)
        assert (memory == wanted).all()


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("length", LENGTHS)
def test_messages_into_the_memory_that_is_sent(rank: int, world_size: int, length: int) -> None:
    with world() as group:
        memory = np.arange(length, dtype=float) + 10 * rank
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        Batch([calls.receive(ME, group, memory[1:], before), calls.send(ME, group, memory[:-1], after)]).wait()
        assert (memory[1:] == np.arange(length - 1) + 10 * before).all()
        assert memory[0] == 10 * rank


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("form", ["all_gather", "gather", "all_to_all"])
def test_outputs_that_share_memory(rank: int, world_size: int, length: int, form: str) -> None:
    """That of the last rank is written last; what an output has in common with an input is read before."""
    with world() as group:
        memory = np.zeros(length + world_size)
        outputs = [memory[other : other + length] for other in reversed(range(world_size))]
        outputs[0][:] = mine = np.arange(length, dtype=float) + 10 * rank
        if form == "all_gather":
            calls.all_gather(ME, group, outputs, outputs[0], now=True)
        elif form == "gather":
            calls.gather(ME, group, outputs, outputs[0], 1, now=True)
        else:
            calls.all_to_all(ME, group, outputs, [outputs[0]] * world_size, now=True)
        wanted = np.zeros(length + world_size)
        wanted[world_size - 1 :][:length] = mine
        if form != "gather" or rank == 1:
            for other in range(world_size):
                wanted[world_size - 1 - other :][:length] = np.arange(length) + 10 * other
        assert (memory == wanted).all()


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("form", ["all_gather", "all_reduce", "reduce_scatter"])
def test_an_output_that_covers_other_elements_of_the_input(rank: int, world_size: int, length: int, form: str) -> None:
    """The input is read before any of them is overwritten."""
    with world() as group:
        numbers = np.arange(length * (world_size + 1), dtype=float)
        total = numbers * sum(range(1, world_size + 1))
        memory, wanted = numbers * (rank + 1), numbers * (rank + 1)
        first, shifted = slice(0, length), slice(length // 3, length // 3 + length)
        of_all, own = slice(0, length * world_size), slice(length * rank, length * (rank + 1))
        if form == "all_gather":
            calls.all_gather(ME, group, memory[of_all], memory[shifted], now=True)
            wanted[of_all] = np.concatenate([numbers[shifted] * (other + 1) for other in range(world_size)])
        elif form == "all_reduce":
            calls.all_reduce(ME, group, memory[shifted], memory[first], ReduceOp.SUM, now=True)
            wanted[shifted] = total[first]
        else:
            calls.reduce_scatter(ME, group, memory[shifted], memory[of_all], ReduceOp.SUM, now=True)
            wanted[shifted] = total[own]
        assert (memory == wanted).all()
