"""torch.distributed._functional_collectives: what is returned and written, on every rank, with any framework's tensors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from rank_numbers import check, everyone, make, numbers
from torch_world import KINDS, assert_result, torch_numbers, world

import shim.frontends.torch.distributed as dist
import shim.frontends.torch.distributed._functional_collectives as functional
from shim.frontends.torch.distributed import distributed_c10d as c10d

REDUCTIONS = {"sum": np.sum, "product": np.prod, "min": np.min, "max": np.max, "avg": np.mean, "SUM": np.sum}
BITS = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(rank: int, world_size: int, kind: str, op: str) -> None:
    with world():
        group = dist.group.WORLD
        tensor = make(kind, numbers(rank, (world_size, 2)))
        combined = REDUCTIONS[op](everyone(world_size, (world_size, 2)), axis=0)
        assert_result(kind, functional.all_reduce(tensor, op, group), combined)
        assert_result(kind, functional.reduce_scatter_single(tensor, op, 0, group), combined[rank : rank + 1])
        assert_result(kind, functional.reduce_scatter_single_autograd(tensor, op, -2, group), combined[rank : rank + 1])
        pair = functional.all_reduce_coalesced([tensor, tensor], op, group)
        for seen in pair:
            assert_result(kind, seen, combined)
        pair = functional.reduce_scatter_single_coalesced([tensor, tensor], op, [0, 0], group)
        for seen in pair:
            assert_result(kind, seen, combined[rank : rank + 1])
        check(kind, tensor, numbers(rank, (world_size, 2)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", BITS)
def test_bits(rank: int, world_size: int, op: str) -> None:
    with world():
        combined = BITS[op].reduce(everyone(world_size, 5, "int32"))
        tensor = make("torch", numbers(rank, 5, "int32"))
        assert_result("torch", functional.all_reduce(tensor, op, dist.group.WORLD), combined)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (3, 2), (0, 4)])
def test_gathering_and_broadcasting(rank: int, world_size: int, kind: str, shape: tuple) -> None:
    with world():
        group = dist.group.WORLD
        tensor = make(kind, numbers(rank, shape))
        parts = everyone(world_size, shape)
        whole = np.concatenate(parts) if shape else np.stack(parts)
        assert_result(kind, functional.all_gather_single(tensor, 0, group), whole)
        assert_result(kind, functional.all_gather_single_autograd(tensor, -len(shape) or 0, group), whole)
        for seen in functional.all_gather_single_coalesced((tensor, tensor), group):
            assert_result(kind, seen, whole)
        for src in range(world_size):
            assert_result(kind, functional.broadcast(tensor, src, group), parts[src])
        check(kind, tensor, numbers(rank, shape))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("dimension", [1, 2, -1, -2])
def test_another_dimension(rank: int, world_size: int, dimension: int) -> None:
    with world():
        group = dist.group.WORLD
        shape = (2, 2 * world_size, world_size)
        tensor = make("torch", numbers(rank, shape))
        parts = everyone(world_size, shape)
        gathered = functional.all_gather_single(tensor, dimension, group)
        assert type(gathered) is torch.Tensor
        check("torch", gathered, np.concatenate(parts, dimension))
        mine = np.split(np.sum(parts, axis=0), world_size, dimension)[rank]
        assert_result("torch", functional.reduce_scatter_single(tensor, "sum", dimension, group), mine)
        inputs = [tensor, tensor]
        seen = functional.reduce_scatter_single_coalesced(inputs, "sum", [dimension] * 2, group)[1]
        assert_result("torch", seen, mine)
        assert inputs[0] is tensor
        assert inputs[1] is tensor


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_exchanges(rank: int, world_size: int, kind: str) -> None:
    def part(of: int, to: int) -> np.ndarray:
        return numbers(of + 10 * to, (of + 2 * to, 2))

    with world():
        group = dist.group.WORLD
        whole = make(kind, np.concatenate([part(rank, to) for to in range(world_size)]))
        into = [part(of, rank).shape[0] for of in range(world_size)]
        cuts = [part(rank, to).shape[0] for to in range(world_size)]
        expected = np.concatenate([part(of, rank) for of in range(world_size)])
        for call in (functional.all_to_all_single, functional.all_to_all_single_autograd):
            assert_result(kind, call(whole, into, cuts, group), expected)
        turned = functional.all_to_all_single(make(kind, numbers(rank, world_size)), None, None, group)
        assert_result(kind, turned, np.array([numbers(of, world_size)[rank] for of in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (3, 2)])
def test_permuting(rank: int, world_size: int, kind: str, shape: tuple) -> None:
    with world():
        group = dist.group.WORLD
        tensor = make(kind, numbers(rank, shape))
        seen = functional.permute_tensor(tensor, [(m + 1) % world_size for m in range(world_size)], group)
        assert_result(kind, seen, numbers((rank - 1) % world_size, shape or (1,)))
        seen = functional.permute_tensor(tensor, [0] * world_size, group)
        parts = [part.reshape(shape or (1,)) for part in everyone(world_size, shape)]
        assert_result(kind, seen, np.concatenate(parts) if rank == 0 else parts[0][:0])


@pytest.mark.ranks(1)
def test_other_world_sizes(rank: int, world_size: int) -> None:
    with world():
        group = dist.group.WORLD
        tensor, last = numbers(rank, (world_size,)), world_size - 1
        parts = everyone(world_size, (world_size,))
        check("numpy", functional.broadcast(tensor, last, group), parts[last])
        check("numpy", functional.all_reduce(tensor, "max", group), np.max(parts, axis=0))
        check("numpy", functional.all_gather_single(tensor, 0, group), np.concatenate(parts))
        mine = np.sum(parts, axis=0)[rank : rank + 1]
        check("numpy", functional.reduce_scatter_single(tensor, "sum", 0, group), mine)
        turned = functional.all_to_all_single(tensor, None, None, group)
        check("numpy", turned, np.array([part[rank] for part in parts]))
        check("numpy", functional.permute_tensor(tensor, list(range(world_size))[::-1], group), parts[last - rank])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_in_place(rank: int, world_size: int, kind: str) -> None:
    with world():
        shape = (world_size, 2)
        parts = everyone(world_size, shape)
        tensor = make(kind, parts[rank])
        assert functional.all_reduce_inplace(tensor, "max") is tensor
        check(kind, tensor, np.max(parts, axis=0))
        tensor = make(kind, parts[rank])
        output = make(kind, np.zeros((world_size * world_size, 2)))
        assert functional.all_gather_tensor_inplace(output, tensor) is output
        check(kind, output, np.concatenate(parts))
        output = make(kind, np.zeros((1, 2)))
        assert functional.reduce_scatter_tensor_inplace(output, tensor, "product") is output
        check(kind, output, np.prod(parts, axis=0)[rank : rank + 1])
        output = make(kind, np.zeros(shape))
        assert functional.all_to_all_inplace(output, tensor) is output
        check(kind, output, np.stack([part[rank] for part in parts]))
        functional.all_to_all_inplace(output, tensor, [1] * world_size, [1] * world_size, dist.group.WORLD)
        outputs = [make(kind, np.zeros(shape)) for _ in range(world_size)]
        assert functional.all_gather_inplace(outputs, tensor) is outputs
        for seen, expected in zip(outputs, parts, strict=True):
            check(kind, seen, expected)
        single = make(kind, np.zeros(world_size))
        scalars = [single[i : i + 1].reshape(()) for i in range(world_size)]
        functional.all_gather_inplace(scalars, make(kind, np.array(float(rank))))
        check(kind, single, np.arange(float(world_size)))


@pytest.mark.ranks(3)
def test_in_place_along_another_dimension(rank: int, world_size: int) -> None:
    with world():
        parts = everyone(world_size, (2, world_size))
        output = make("torch", np.zeros((2, world_size**2)))
        functional.all_gather_tensor_inplace(output, make("torch", parts[rank]), gather_dim=1)
        check("torch", output, np.concatenate(parts, 1))
        output = make("torch", np.zeros((2, 1)))
        functional.reduce_scatter_tensor_inplace(output, make("torch", parts[rank]), scatter_dim=1)
        check("torch", output, np.sum(parts, axis=0)[:, rank : rank + 1])


@pytest.mark.ranks(3)
def test_sending_and_receiving(rank: int, world_size: int) -> None:
    with world():
        right, left = (rank + 1) % world_size, (rank - 1) % world_size
        sent = functional.isend_inplace(make("torch", numbers(rank, 3)), right, 7)
        target = make("torch", np.zeros(3))
        received = functional.irecv_inplace(target, left, 7)
        assert_result("torch", received, numbers(left, 3))
        check("torch", target, numbers(left, 3))
        assert_result("torch", sent, np.zeros(0))
        targets = [make("torch", np.zeros(3)) for _ in range(2)]
        mine = make("torch", numbers(rank, 3))
        seen = functional.batch_p2p_ops_inplace(
            ["irecv", "isend", "isend", "irecv"],
            [left, right, right, left],
            [0, 0, 1, 1],
            [targets[0], mine, mine * 2, targets[1]],
            None,
        )
        assert_result("torch", seen[3], numbers(left, 3) * 2)
        assert_result("torch", seen[0], numbers(left, 3))
        check("torch", targets[1], numbers(left, 3) * 2)
        assert functional.batch_p2p_ops_inplace([], [], [], [], "") == []


@pytest.mark.ranks(3)
def test_a_subgroup_in_another_order(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group([2, 0], sort_ranks=False)
        if rank == 1:
            with pytest.raises(ValueError, match="DeviceMesh"):
                functional.all_reduce(make("torch", numbers(rank, 2)), "sum", group)
            return
        tensor = make("torch", numbers(rank, 2))
        total = numbers(0, 2) + numbers(2, 2)
        assert_result("torch", functional.broadcast(tensor, 0, group), numbers(2, 2))  # ranks of the group
        assert_result("torch", functional.all_reduce(tensor, "sum", group), total)
        assert_result("torch", functional.all_gather_single(tensor, 0, group), np.append(numbers(2, 2), numbers(0, 2)))
        assert_result("torch", functional.permute_tensor(tensor, [1, 0], group), numbers(2 - rank, 2))
        target = make("torch", np.zeros(2))
        if rank == 0:  # ranks of the world, or of the group where they are called so
            functional.isend_inplace(tensor, 2, group=group).wait()
            functional.isend_inplace(tensor, None, group=group, group_dst=0).wait()
        else:
            assert_result("torch", functional.irecv_inplace(target, 0, group=group), numbers(0, 2))
            assert_result("torch", functional.irecv_inplace(target, None, group=group, group_src=1), numbers(0, 2))
        both = functional.batch_p2p_ops_inplace(
            ["isend", "irecv"], [2 - rank] * 2, [0, 0], [tensor, target], group.group_name
        )
        assert_result("torch", both[1], numbers(2 - rank, 2))


@pytest.mark.ranks(3)
def test_kinds_of_group(rank: int, world_size: int) -> None:
    from torch.distributed.device_mesh import DeviceMesh

    def assert_sum(group: Any, ranks: list[int]) -> None:
        seen = functional.all_reduce(make("torch", numbers(rank, 2)), "sum", group)
        assert_result("torch", seen, sum(numbers(other, 2) for other in ranks))

    with world():
        everyone_group = dist.group.WORLD
        pair = dist.new_group([0, 2])
        assert_sum(everyone_group.group_name, [0, 1, 2])
        for given in ([0, 1, 2], [2, 1, 0]):
            with pytest.warns(FutureWarning, match="list of ranks") as caught:
                assert_sum(given, [0, 1, 2])
            assert caught[0].filename == __file__
        flat = DeviceMesh("cpu", [0, 1, 2], _init_backend=False, _rank=rank)
        assert_sum(flat, [0, 1, 2])
        assert_sum((flat, 0), [0, 1, 2])
        tall = DeviceMesh("cpu", [[0], [1], [2]], _init_backend=False, _rank=rank)
        assert_sum((tall, 0), [0, 1, 2])
        assert_sum((tall, 1), [rank])
        with pytest.raises(AssertionError, match="1-D mesh"):
            functional.all_reduce(make("torch", numbers(rank, 2)), "sum", tall)
        if rank != 1:
            assert_sum(pair.group_name, [0, 2])
            with pytest.warns(FutureWarning, match="list of ranks"):
                assert_sum([[0, 2], [1, 7]], [0, 2])


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_dtypes(rank: int, world_size: int, dtype: str) -> None:
    with world():
        group = dist.group.WORLD
        tensor = torch_numbers(rank, (4,), dtype)
        both = [torch_numbers(other, (4,), dtype) for other in range(2)]
        in_numpy = "float32" if dtype == "bfloat16" else dtype
        total = np.sum([numbers(other, (4,), in_numpy) for other in range(2)], axis=0)
        summed = torch.from_numpy(total).to(tensor.dtype)
        assert functional.all_reduce(tensor, "sum", group).tolist() == summed.tolist()
        gathered = functional.all_gather_single(tensor, 0, group)
        assert gathered.tolist() == [*both[0].tolist(), *both[1].tolist()]


@pytest.mark.ranks(2)
def test_tensors_of_mindspore_and_paddle(rank: int, world_size: int) -> None:
    import mindspore  # before paddle, whose libraries clash otherwise  # noqa: F401
    import paddle  # for ``make``, which imports nothing  # noqa: F401

    with world():
        group = dist.group.WORLD
        for kind in ("mindspore", "paddle"):
            tensor = make(kind, numbers(rank, (2, 2), "float32"))
            both = everyone(2, (2, 2), "float32")
            check(kind, functional.broadcast(tensor, 1, group), both[1])
            check(kind, functional.all_reduce(tensor, "max", group), np.max(both, axis=0))
            check(kind, functional.all_gather_single(tensor, 0, group), np.concatenate(both))
            check(
                kind, functional.reduce_scatter_single(tensor, "sum", 0, group), np.sum(both, axis=0)[rank : rank + 1]
            )
            check(kind, functional.all_to_all_single(tensor, [1, 1], [1, 1], group), np.stack([b[rank] for b in both]))
            check(kind, functional.permute_tensor(tensor, [1, 0], group), both[1 - rank])
            check(kind, functional.all_reduce_inplace(tensor), np.sum(both, axis=0))
            with pytest.raises(NotImplementedError, match="gather_dim must be 0"):
                functional.all_gather_single(tensor, 1, group)


@pytest.mark.ranks(1)
@pytest.mark.parametrize(
    ("old", "arguments"),
    [
        ("all_gather_tensor", (0,)),
        ("all_gather_tensor_autograd", (0,)),
        ("reduce_scatter_tensor", ("sum", 0)),
        ("reduce_scatter_tensor_autograd", ("sum", 0)),
        ("all_gather_into_tensor_coalesced", ()),
        ("reduce_scatter_tensor_coalesced", ("sum", [0])),
    ],
)
def test_renamed(rank: int, world_size: int, old: str, arguments: tuple) -> None:
    new = old.replace("into_tensor", "single").replace("tensor", "single")
    with world():
        tensor = make("torch", numbers(3, 2))
        with pytest.warns(FutureWarning, match=f"{old}; call .*{new}$") as caught:
            seen = getattr(functional, old)([tensor] if "coalesced" in old else tensor, *arguments, dist.group.WORLD)
        assert caught[0].filename == __file__
        check("torch", functional.wait_tensor(seen[0] if "coalesced" in old else seen), numbers(3, 2))
        assert inspect.signature(getattr(functional, old)) == inspect.signature(getattr(functional, new))


@pytest.mark.ranks(4)
def test_groups_along_the_dimensions_of_a_mesh(rank: int, world_size: int) -> None:
    """Made by their members when they are first asked for, in rising order, and found again; destroyed with the rest."""
    from torch.distributed.device_mesh import DeviceMesh

    with world():
        mesh = DeviceMesh("cpu", [[3, 1], [0, 2]], _init_backend=False, _rank=rank)
        rows, columns = {3: 1, 1: 3, 0: 2, 2: 0}, {3: 0, 0: 3, 1: 2, 2: 1}
        for _ in range(2):
            for dimension, partner in ((0, columns[rank]), (-1, rows[rank])):
                seen = functional.all_reduce(make("torch", numbers(rank, 3)), "sum", (mesh, dimension))
                assert_result("torch", seen, numbers(rank, 3) + numbers(partner, 3))
            first = functional.broadcast(make("torch", numbers(rank, 3)), 0, (mesh, 1))
            assert_result("torch", first, numbers(1 if rank in (1, 3) else 0, 3))
        made = [c10d._find_pg_by_ranks_and_tag("", [rank, partner[rank]]) for partner in (rows, columns)]
        assert [list(group.core.ranks) for group in made] == [sorted([rank, p[rank]]) for p in (rows, columns)]
        dist.destroy_process_group(made[0])
        assert not made[0].core.is_alive
        seen = functional.all_reduce(make("torch", numbers(rank, 3)), "sum", (mesh, 1))
        assert_result("torch", seen, numbers(rank, 3) + numbers(rows[rank], 3))
    assert not made[1].core.is_alive
