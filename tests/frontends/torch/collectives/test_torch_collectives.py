"""What neither the tables nor torch beside this ask of the torch frontend's collectives, with numpy's and torch's tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rank_numbers import check, make, numbers
from torch_world import KINDS, world

import shim.frontends.torch.distributed as dist


@pytest.mark.ranks(2)
def test_all_reduce_takes_the_ops_of_torch_itself(rank: int, world_size: int) -> None:
    import torch.distributed as theirs

    with world():
        everything = [numbers(other, 3) for other in range(world_size)]
        for op, expected in (
            (theirs.ReduceOp.MAX, np.max(everything, axis=0)),
            (theirs.ReduceOp(theirs.ReduceOp.MIN), np.min(everything, axis=0)),
            (theirs._make_nccl_premul_sum(2.0), 2 * np.sum(everything, axis=0)),
        ):
            tensor = make("torch", numbers(rank, 3))
            dist.all_reduce(tensor, op)
            check("torch", tensor, expected)


@pytest.mark.ranks(2)
def test_premultiplied_sum(rank: int, world_size: int) -> None:
    with world():
        tensor = make("numpy", numbers(rank, 3))
        dist.all_reduce(tensor, dist.distributed_c10d._make_nccl_premul_sum(rank + 2))
        check("numpy", tensor, sum((other + 2) * numbers(other, 3) for other in range(world_size)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 2), (1,), (0, 4)])
def test_all_gather_single_concatenated_and_stacked(rank: int, world_size: int, kind: str, shape: tuple) -> None:
    with world():
        everything = np.stack([numbers(other, shape) for other in range(world_size)])
        stacked = make(kind, np.zeros((world_size, *shape)))
        dist.all_gather_single(stacked, make(kind, numbers(rank, shape)))
        check(kind, stacked, everything)
        concatenated = make(kind, np.zeros((world_size * shape[0], *shape[1:])))
        dist.all_gather_single(concatenated, make(kind, numbers(rank, shape)))
        check(kind, concatenated, np.concatenate(everything))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("form", ["every second", "transposed", "scalar", "empty", "backwards"])
def test_outputs_and_inputs_of_every_form(rank: int, world_size: int, form: str) -> None:
    """What lies between the elements of a view is left as it is."""

    def view(base: np.ndarray) -> np.ndarray:
        forms = {
            "every second": base[::2, 1],
            "transposed": base.T,
            "scalar": np.ndarray((), base.dtype, base, 5 * base.itemsize),
            "empty": base[:0],
            "backwards": base[::-1],
        }
        return forms[form]

    with world():
        everything = [view(numbers(other, (4, 3))).copy() for other in range(world_size)]
        for call, expected in (
            (dist.all_reduce, sum(everything)),
            (lambda tensor: dist.broadcast(tensor, 1), everything[1]),
        ):
            base, untouched = numbers(rank, (4, 3)), numbers(rank, (4, 3))
            call(view(base))
            view(untouched)[...] = expected
            check("numpy", base, untouched)
        base, untouched = numbers(rank, (4, 3)), numbers(rank, (4, 3))
        if rank == 0:
            dist.send(view(base), 1)
        else:
            assert dist.recv(view(base), 0) == 0
            view(untouched)[...] = everything[0]
        check("numpy", base, untouched)
        outputs = [numbers(rank + other, (4, 3)) for other in range(world_size)]
        dist.all_gather([view(output) for output in outputs], view(numbers(rank, (4, 3))))
        for other, output in enumerate(outputs):
            untouched = numbers(rank + other, (4, 3))
            view(untouched)[...] = everything[other]
            check("numpy", output, untouched)


@pytest.mark.ranks(3)
def test_all_to_all_single_with_empty_split_sizes(rank: int, world_size: int) -> None:
    with world():
        output = np.zeros((2 * world_size, 3))
        dist.all_to_all_single(output, numbers(rank, (2 * world_size, 3)), [], [])
        sent = [numbers(other, (2 * world_size, 3))[2 * rank : 2 * rank + 2] for other in range(world_size)]
        check("numpy", output, np.concatenate(sent))


@pytest.mark.ranks(2)
def test_async_calls_return_work(rank: int, world_size: int) -> None:
    with world():
        total = sum(numbers(other, 5) for other in range(world_size))
        tensors = [make("torch", numbers(rank, 5)) for _ in range(3)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work, tensor in zip(works, tensors, strict=True):
            assert isinstance(work, dist.Work)
            assert work.wait() is True
            assert work.wait() is True
            assert work.is_completed()
            assert work.is_success()
            assert work.exception() is None
            assert work.result()[0] is tensor
            check("torch", tensor, total)
        tensor = make("torch", numbers(rank, 5))
        future = dist.all_reduce(tensor, async_op=True).get_future()
        assert torch.equal(future.wait()[0], torch.from_numpy(total))


@pytest.mark.ranks(2)
def test_every_collective_can_be_async(rank: int, world_size: int) -> None:
    with world():
        mine, size = numbers(rank, 2), world_size
        both = [numbers(other, 2) for other in range(size)]
        single, listed, scattered = np.zeros((size, 2)), [np.zeros(2) for _ in range(size)], np.zeros(2)
        gathered = [np.zeros(2) for _ in range(size)] if rank == 1 else None
        exchanged, swapped, reduced = np.zeros((size, 2)), [np.zeros(2) for _ in range(size)], np.zeros(2)
        works = [
            dist.all_gather_single(single, mine, async_op=True),
            dist.all_gather(listed, mine, async_op=True),
            dist.gather(mine, gathered, dst=1, async_op=True),
            dist.scatter(scattered, both if rank == 0 else None, async_op=True),
            dist.all_to_all_single(exchanged, np.stack(both), async_op=True),
            dist.all_to_all(swapped, both, async_op=True),
            dist.reduce_scatter_single(reduced, np.stack(both), async_op=True),
            dist.broadcast(mine, 1, async_op=True),
            dist.barrier(async_op=True),
        ]
        assert [work.wait() for work in works] == [True] * len(works)
        check("numpy", single, np.stack(both))
        check("numpy", np.stack(listed), np.stack(both))
        check("numpy", np.stack(gathered or both), np.stack(both))
        check("numpy", scattered, both[rank])
        check("numpy", exchanged, np.stack([both[rank]] * size))
        check("numpy", np.stack(swapped), np.stack([both[rank]] * size))
        check("numpy", reduced, size * both[rank])
        check("numpy", mine, both[1])


@pytest.mark.ranks(1)
def test_a_world_of_one() -> None:
    with world():
        mine, output = numbers(0, (2, 3)), np.zeros((2, 3))
        outputs = {name: np.zeros((2, 3)) for name in ("all_gather", "gather", "scatter", "all_to_all")}
        dist.all_reduce(mine)
        dist.broadcast(mine, 0)
        dist.all_gather([outputs["all_gather"]], mine)
        dist.gather(mine, [outputs["gather"]])
        dist.scatter(outputs["scatter"], [mine])
        dist.all_to_all([outputs["all_to_all"]], [mine])
        dist.all_gather_single(output, mine)
        dist.all_to_all_single(mine, output)
        dist.reduce_scatter_single(output, mine, dist.ReduceOp.AVG)
        dist.barrier()
        for seen in (mine, output, *outputs.values()):
            check("numpy", seen, numbers(0, (2, 3)))
        slots = [None]
        dist.all_gather_object(slots, "mine")
        assert slots == ["mine"]
