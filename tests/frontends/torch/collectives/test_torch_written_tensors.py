"""torch's autograd hears of what a call writes, and a call in the background keeps the memory of torch's tensors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch_world import world

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.errors import MismatchError

ME = Caller("torch.distributed.broadcast")


class Tensors:
    """Makes the tensors of a call, and remembers which it is to write."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.written: list[Any] = []
        self.read: list[Any] = []

    def output(self, length: int = 2) -> Any:
        self.written.append(torch.full((length,), float(self.rank)))
        return self.written[-1]

    def input(self, length: int = 2) -> Any:
        self.read.append(torch.full((length,), float(self.rank)))
        return self.read[-1]

    def at(self, root: int, is_written: bool = True) -> Any:
        """Return a tensor that *root* alone writes, or all but it."""
        return self.output() if (self.rank == root) == is_written else self.input()

    def outputs(self) -> list[Any]:
        return [self.output() for _ in range(self.size)]

    def inputs(self) -> list[Any]:
        return [self.input() for _ in range(self.size)]


def ring(t: Tensors) -> list[Any]:
    after, before = (t.rank + 1) % t.size, (t.rank - 1) % t.size
    return [dist.P2POp(dist.irecv, t.output(), before), dist.P2POp(dist.isend, t.input(), after)]


def one_message(t: Tensors, async_op: bool) -> Any:
    if t.rank == 0:
        return (dist.isend if async_op else dist.send)(t.input(), 1)
    return (dist.irecv if async_op else dist.recv)(t.output(), 0) if t.rank == 1 else None


def in_a_block(t: Tensors, async_op: bool) -> Any:
    with dist._coalescing_manager(async_ops=async_op) as block:
        for tensor in (t.output(), t.output(3)):
            dist.all_reduce(tensor)
    return block


WRITING: dict[str, Callable[[Tensors, bool], Any]] = {
    "all_reduce": lambda t, a: dist.all_reduce(t.output(), async_op=a),
    "broadcast": lambda t, a: dist.broadcast(t.at(1, is_written=False), 1, async_op=a),
    "reduce": lambda t, a: dist.reduce(t.at(1), 1, async_op=a),
    "all_gather": lambda t, a: dist.all_gather(t.outputs(), t.input(), async_op=a),
    "all_gather_single": lambda t, a: dist.all_gather_single(t.output(2 * t.size), t.input(), async_op=a),
    "gather": lambda t, a: dist.gather(t.input(), t.outputs() if t.rank == 1 else None, 1, async_op=a),
    "scatter": lambda t, a: dist.scatter(t.output(), t.inputs() if t.rank == 1 else None, 1, async_op=a),
    "reduce_scatter": lambda t, a: dist.reduce_scatter(t.output(), t.inputs(), async_op=a),
    "reduce_scatter_single": lambda t, a: dist.reduce_scatter_single(t.output(), t.input(2 * t.size), async_op=a),
    "all_to_all": lambda t, a: dist.all_to_all(t.outputs(), t.inputs(), async_op=a),
    "all_to_all_single": lambda t, a: dist.all_to_all_single(t.output(2 * t.size), t.input(2 * t.size), async_op=a),
    "all_reduce_coalesced": lambda t, a: dist.all_reduce_coalesced([t.output(), t.output(3)], async_op=a),
    "block": in_a_block,
    "batch": lambda t, a: dist.batch_isend_irecv(ring(t)),
    "message": one_message,
    "method": lambda t, a: dist.group.WORLD.allgather([t.outputs()], [t.input()]),
    "functional": lambda t, a: functional.all_gather_inplace(t.outputs(), t.input()) and None,
}


def numbers_of(tensors: Sequence[Any]) -> list[int]:
    return [tensor._version for tensor in tensors]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.filterwarnings("ignore:torch deprecates:FutureWarning")
def test_every_output_counts_as_written_and_no_input(rank: int, world_size: int, async_op: bool) -> None:
    with world():
        for name, call in WRITING.items():
            tensors = Tensors(rank, world_size)
            works = call(tensors, async_op)
            assert min(numbers_of(tensors.written), default=1) > 0, name
            for work in works if isinstance(works, list) else [works]:
                if hasattr(work, "wait"):
                    work.wait()
            is_started = name in ("batch", "method") or (async_op and name != "functional")
            least = 1 + is_started  # when it begins, and when it has ended
            assert min(numbers_of(tensors.written), default=least) >= least, name
            assert max(numbers_of(tensors.read), default=0) == 0, name


@pytest.mark.ranks(2)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_gradient_of_what_was_overwritten(rank: int, world_size: int, when: str) -> None:
    """torch raises, for a view of the output and one that was made while it was written too."""
    with world():
        weight, gathered = torch.ones(2, requires_grad=True), [torch.ones(2), torch.ones(2)]
        loss = (weight * gathered[1][:]).sum()
        work = dist.all_gather(gathered, torch.full((2,), float(rank)), async_op=when == "meanwhile")
        if when == "meanwhile":
            loss = (weight * gathered[1]).sum()
            work.wait()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        (weight * gathered[1]).sum().backward()
        assert weight.grad.tolist() == [1.0, 1.0]


@pytest.mark.ranks(3)
@pytest.mark.parametrize("way", ["held", "dropped", "message"])
def test_a_gradient_of_what_is_overwritten_while_nobody_waits(rank: int, world_size: int, way: str) -> None:
    """The end of a call counts as a write when it has come, whether or not its work is still there."""
    with world():
        for late in range(world_size):  # begins when the others have kept their tensors
            if rank == late:
                for other in set(range(world_size)) - {late}:
                    dist.recv(torch.ones(1), other, tag=1)
            weight, kept = torch.ones(2, requires_grad=True), torch.full((2,), -1.0)
            if way != "message":
                work = dist.all_reduce(kept, async_op=True)
            elif rank == late:
                works = [dist.isend(torch.ones(2), other) for other in range(world_size) if other != late]
                work = works[0]
            else:
                work = dist.irecv(kept, late)
            loss = (weight * kept).sum()
            if way == "dropped":
                del work
            if rank != late:
                dist.send(torch.ones(1), late, tag=1)
                while kept[0] == -1.0:
                    time.sleep(0.001)
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    until_raised(loss)
                assert kept._version == 2
            dist.barrier()


def until_raised(loss: Any) -> None:
    """Compute gradients until torch raises, which may be a moment after the data has come."""
    for _ in range(1000):
        loss.backward(retain_graph=True)
        time.sleep(0.001)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("way", ["now", "prepared", "async", "async and dropped"])
def test_what_was_not_written_counts_as_it_was(rank: int, world_size: int, way: str) -> None:
    """A call in the background counts as a write from its start on, when nobody knows how it will end; torch does that too."""
    with world():
        tensor, weight = torch.full((2 + rank,), float(rank)), torch.ones(2 + rank, requires_grad=True)
        loss = (weight * tensor).sum()
        if way.startswith("async"):
            work = dist.broadcast(tensor, 0, async_op=True)
            loss = (weight * tensor).sum()
            if way == "async":
                with pytest.raises(MismatchError):
                    work.wait()
            del work
            dist.barrier()  # it has ended
        else:
            with pytest.raises(MismatchError):
                calls.broadcast(ME, groups.world(ME), tensor, 0, way == "now").wait()
        loss.backward()  # nobody has written the tensor that it uses
        assert tensor._version == (way.startswith("async") and rank == 1)
        assert tensor.tolist() == weight.grad.tolist() == [rank] * (2 + rank)


@pytest.mark.ranks(2)
def test_what_torch_does_not_count(rank: int, world_size: int) -> None:
    with world():
        with torch.inference_mode():
            uncounted = torch.ones(2)
        dist.all_reduce(uncounted)
        assert uncounted.tolist() == [2.0, 2.0]


LENGTH = 3_000_000  # whose memory the system takes back at once


def give_other_memory(tensor: Any) -> None:
    tensor.data = torch.empty(1)


def set_other_memory(tensor: Any) -> None:
    tensor.set_(torch.empty(1))


def nothing_to_give_back(tensor: Any) -> None:
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(9 * LENGTH)


# Each takes the memory of what a call in the background reads and of what it writes.
TAKING = [give_other_memory, set_other_memory, nothing_to_give_back]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("take", TAKING)
@pytest.mark.parametrize("form", ["all_gather", "block", "message", "functional"])
def test_memory_that_a_call_in_the_background_uses(
    rank: int, world_size: int, form: str, take: Callable[[Any], None]
) -> None:
    with world():
        apart = dist.new_group()
        sent, received = torch.full((LENGTH,), rank + 1.0), torch.zeros(LENGTH * world_size)
        if rank != 0:
            dist.barrier(apart)  # rank 0 has begun, and its memory been taken
        works: list[Any] = []
        kept = [received.view(-1)]
        before = (rank - 1) % world_size
        if form == "block":
            with dist._coalescing_manager(async_ops=True) as block:
                dist.all_gather_single(received, sent)
                if rank == 0:
                    take(sent)
                    dist.barrier(apart)
            works.append(block)
        elif form == "all_gather":
            works.append(dist.all_gather_single(received, sent, async_op=True))
        elif form == "message":
            works.append(dist.isend(sent, (rank + 1) % world_size))
            works.append(dist.irecv(received[:LENGTH], before))
        else:
            kept.append(functional.all_gather_single(sent, 0, dist.group.WORLD))
        if rank == 0 and form != "block":
            if form != "functional" or take is not nothing_to_give_back:  # it has copied what it reads
                take(sent)
            if form != "functional":
                take(received)
            dist.barrier(apart)
        garbage = [torch.full((LENGTH,), -1.0) for _ in range(2)]
        for work in works:
            work.wait()
        wanted = [before + 1.0] if form == "message" else [other + 1.0 for other in range(world_size)]
        result = kept[-1].view(-1)
        for place, value in enumerate(wanted):
            assert (result[place * LENGTH :][:LENGTH] == value).all()
        assert (garbage[0] == -1.0).all()
        if take is nothing_to_give_back:
            sent.untyped_storage().resize_(0)  # nothing uses it any more
        dist.barrier()


@pytest.mark.ranks(2)
def test_memory_that_two_calls_use(rank: int, world_size: int) -> None:
    with world():
        apart, tensor = dist.new_group(), torch.full((4,), rank + 1.0)
        if rank != 0:
            dist.barrier(apart)
        first = dist.isend(tensor, 1 - rank)
        second = dist.all_gather_single(torch.zeros(8), tensor, async_op=True)
        first.wait()
        dist.recv(torch.zeros(4), 1 - rank) if rank != 0 else None
        if rank == 0:
            with pytest.raises(RuntimeError, match="not resizable"):
                tensor.untyped_storage().resize_(0)
            dist.barrier(apart)
            dist.recv(torch.zeros(4), 1)
        second.wait()
        tensor.untyped_storage().resize_(0)
        shared = torch.from_numpy(tensor_of_numpy := torch.ones(3).numpy())
        dist.all_reduce(shared, async_op=True).wait()
        assert not shared.untyped_storage().resizable()  # as before
        assert tensor_of_numpy.tolist() == [2.0, 2.0, 2.0]
