"""The torch frontend's collectives give what torch documents, on every rank, with numpy's and torch's tensors."""

from __future__ import annotations

import numpy as np
import pytest
from torch_world import FLOAT8_DTYPES, SIZES, TORCH_DTYPES, check, make, numbers, torch_numbers, world

import shim.frontends.torch.distributed as dist

KINDS = ("numpy", "torch")
REDUCTIONS = {"SUM": np.sum, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max, "AVG": np.mean}


@SIZES
@pytest.mark.parametrize("kind", KINDS)
def test_broadcast_from_every_rank(rank: int, world_size: int, kind: str) -> None:
    with world():
        for src in range(world_size):
            tensor = make(kind, numbers(rank, (3, 2)))
            assert dist.broadcast(tensor, src) is None
            check(kind, tensor, numbers(src, (3, 2)))
            tensor = make(kind, numbers(rank, (3, 2)))
            dist.broadcast(tensor, group_src=src)
            check(kind, tensor, numbers(src, (3, 2)))


@SIZES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_all_reduce(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        tensor = make(kind, numbers(rank, (2, 5)))
        assert dist.all_reduce(tensor, getattr(dist.ReduceOp, op)) is None
        everything = [numbers(other, (2, 5)) for other in range(world_size)]
        check(kind, tensor, REDUCTIONS[op](everything, axis=0))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["BAND", "BOR", "BXOR"])
def test_all_reduce_of_bits(rank: int, world_size: int, op: str) -> None:
    with world():
        tensor = make("torch", numbers(rank, 7, "int32"))
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
        combine = {"BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}[op]
        check("torch", tensor, combine.reduce([numbers(other, 7, "int32") for other in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_all_reduce_of_every_dtype(rank: int, world_size: int, dtype: str) -> None:
    import torch

    with world():
        tensor = torch_numbers(rank, (4,), dtype)
        dist.all_reduce(tensor)
        in_numpy = "float32" if dtype == "bfloat16" else dtype
        total = np.sum([numbers(other, (4,), in_numpy) for other in range(world_size)], axis=0)
        assert torch.equal(tensor, torch.from_numpy(total).to(tensor.dtype))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", [*TORCH_DTYPES, *FLOAT8_DTYPES])
def test_all_gather_of_every_dtype(rank: int, world_size: int, dtype: str) -> None:
    import torch

    with world():
        outputs = [torch.zeros(4, dtype=getattr(torch, dtype)) for _ in range(world_size)]
        dist.all_gather(outputs, torch_numbers(rank, (4,), dtype))
        for other, output in enumerate(outputs):
            assert torch.equal(output.view(torch.uint8), torch_numbers(other, (4,), dtype).view(torch.uint8))


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
def test_all_gather_with_a_size_for_each_rank(rank: int, world_size: int, kind: str) -> None:
    with world():
        outputs = [make(kind, np.zeros((other, 2))) for other in range(world_size)]
        assert dist.all_gather(outputs, make(kind, numbers(rank, (rank, 2)))) is None
        for other, output in enumerate(outputs):
            check(kind, output, numbers(other, (other, 2)))


@SIZES
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
@pytest.mark.parametrize("kind", KINDS)
def test_all_gather_single_of_scalars(rank: int, world_size: int, kind: str) -> None:
    with world():
        output = make(kind, np.zeros(world_size))
        dist.all_gather_single(output, make(kind, numbers(rank, ())))
        check(kind, output, np.stack([numbers(other, ()) for other in range(world_size)]))


@pytest.mark.ranks(2)
def test_strided_tensors(rank: int, world_size: int) -> None:
    import torch

    with world():
        whole = torch.zeros(2 * world_size, 6, dtype=torch.float64)
        dist.all_gather_single(whole[:, ::2], torch.from_numpy(numbers(rank, (3, 2))).t())
        expected = np.zeros((2 * world_size, 6))
        expected[:, ::2] = np.concatenate([numbers(other, (3, 2)).T for other in range(world_size)])
        check("torch", whole, expected)


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


@pytest.mark.ranks(2)
def test_the_old_names_warn_and_work(rank: int, world_size: int) -> None:
    with world():
        output = np.zeros((world_size, 3))
        with pytest.warns(FutureWarning, match="all_gather_single") as caught:
            dist.all_gather_into_tensor(output, numbers(rank, 3))
        assert caught[0].filename == __file__
        check("numpy", output, np.stack([numbers(other, 3) for other in range(world_size)]))
        part = np.zeros(2)
        with pytest.warns(FutureWarning, match="reduce_scatter_single") as caught:
            dist.reduce_scatter_tensor(part, numbers(rank, 2 * world_size))
        assert caught[0].filename == __file__
        total = sum(numbers(other, 2 * world_size) for other in range(world_size))
        check("numpy", part, total[2 * rank : 2 * rank + 2])


@SIZES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["SUM", "MAX"])
def test_reduce_scatter_single_of_both_forms(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        everything = [numbers(other, (world_size, 2, 3)) for other in range(world_size)]
        expected = REDUCTIONS[op](everything, axis=0)[rank]
        for shape in [(world_size, 2, 3), (world_size * 2, 3)]:
            output = make(kind, np.zeros((2, 3)))
            dist.reduce_scatter_single(output, make(kind, everything[rank].reshape(shape)), getattr(dist.ReduceOp, op))
            check(kind, output, expected)


def rows_between(sender: int, receiver: int) -> int:
    """Different for every pair, and nothing from a rank to itself."""
    return 0 if sender == receiver else 1 + sender + 2 * receiver


def part(sender: int, receiver: int, dtype: str) -> np.ndarray:
    return numbers(sender + 7 * receiver, (rows_between(sender, receiver), 2), dtype)


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
def test_all_to_all_with_unequal_parts(rank: int, world_size: int, kind: str, dtype: str) -> None:
    with world():
        inputs = [make(kind, part(rank, other, dtype)) for other in range(world_size)]
        outputs = [make(kind, np.zeros((rows_between(other, rank), 2), dtype)) for other in range(world_size)]
        assert dist.all_to_all(outputs, inputs) is None
        for other, output in enumerate(outputs):
            check(kind, output, part(other, rank, dtype))


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool"])
def test_all_to_all_single_with_split_sizes(rank: int, world_size: int, kind: str, dtype: str) -> None:
    with world():
        sent = [part(rank, other, dtype) for other in range(world_size)]
        received = [part(other, rank, dtype) for other in range(world_size)]
        output = make(kind, np.zeros((sum(map(len, received)), 2), dtype))
        splits = [len(rows) for rows in received], [len(rows) for rows in sent]
        assert dist.all_to_all_single(output, make(kind, np.concatenate(sent)), *splits) is None
        check(kind, output, np.concatenate(received))


@SIZES
@pytest.mark.parametrize("empty", [None, []])
def test_all_to_all_single_with_equal_parts(rank: int, world_size: int, empty: object) -> None:
    with world():
        output = np.zeros((2 * world_size, 3))
        dist.all_to_all_single(output, numbers(rank, (2 * world_size, 3)), empty, empty)
        sent = [numbers(other, (2 * world_size, 3))[2 * rank : 2 * rank + 2] for other in range(world_size)]
        check("numpy", output, np.concatenate(sent))


@SIZES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gather_and_scatter_with_every_root(rank: int, world_size: int, kind: str, dtype: str) -> None:
    with world():
        for root in range(world_size):
            mine = make(kind, numbers(rank, (2, 2), dtype))
            gathered = [make(kind, np.zeros((2, 2), dtype)) for _ in range(world_size)] if rank == root else None
            assert dist.gather(mine, gathered, dst=root) is None
            for other, tensor in enumerate(gathered or []):
                check(kind, tensor, numbers(other, (2, 2), dtype))
            back = make(kind, np.zeros((2, 2), dtype))
            assert dist.scatter(back, gathered, group_src=root) is None
            check(kind, back, numbers(rank, (2, 2), dtype))


@pytest.mark.ranks(2)
def test_gather_and_scatter_default_to_rank_0(rank: int, world_size: int) -> None:
    with world():
        gathered = [np.zeros(2) for _ in range(world_size)] if rank == 0 else []
        dist.gather(numbers(rank, 2), gathered)
        back = np.zeros(2)
        dist.scatter(back, gathered)
        check("numpy", back, numbers(rank, 2))


@SIZES
@pytest.mark.parametrize("kind", KINDS)
def test_send_and_recv_around_a_ring(rank: int, world_size: int, kind: str) -> None:
    with world():
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        received = make(kind, np.zeros(4))
        if rank == 0:
            assert dist.send(make(kind, numbers(rank, 4)), after) is None
            assert dist.recv(received, before) == before
        else:
            assert dist.recv(received, group_src=before) == before
            dist.send(make(kind, numbers(rank, 4)), group_dst=after)
        check(kind, received, numbers(before, 4))


@pytest.mark.ranks(3)
def test_recv_from_any_rank_tells_which(rank: int, world_size: int) -> None:
    with world():
        if rank != 1:
            dist.send(numbers(rank, 4), 1, tag=3)
            return dist.barrier()
        seen = set()
        for _ in range(world_size - 1):
            tensor = np.zeros(4)
            source = dist.recv(tensor, tag=3)
            check("numpy", tensor, numbers(source, 4))
            seen.add(source)
        assert seen == {0, 2}
        return dist.barrier()


@pytest.mark.ranks(3)
def test_all_gather_object(rank: int, world_size: int) -> None:
    with world():
        slots = [None] * world_size + ["kept"]
        assert dist.all_gather_object(slots, {"rank": rank, "text": "é" * 1000 * rank}) is None
        assert slots[-1] == "kept"
        assert slots[:-1] == [{"rank": other, "text": "é" * 1000 * other} for other in range(world_size)]


@pytest.mark.ranks(2)
def test_async_calls_return_work(rank: int, world_size: int) -> None:
    import torch

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
