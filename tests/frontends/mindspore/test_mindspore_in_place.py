"""The functions of mint.distributed and ops.communication that write into their callers' tensors, on every rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import KINDS, REDUCTIONS, check, make, numbers, of_all, world

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops.communication as communication
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.communication import comm_func
from shim.frontends.mindspore.mint.distributed import distributed

MODULES: dict[str, Any] = {"mint": mint, "ops": communication}
WITH_MORE: dict[str, Any] = {
    "ops": ops,
    "ops.communication": communication,
    "comm_func": comm_func,
    "distributed": distributed,
}
ROWS = (2, 0, 3, 1, 4, 1, 2)  # of each rank where they differ


def zeros(kind: str, shape: Any, dtype: str = "float32") -> Any:
    return make(kind, np.zeros(shape, "float32" if dtype == "bfloat16" else dtype), dtype)


def check_all(kind: str, tensors: Sequence[Any], expected: Sequence[np.ndarray[Any, Any]]) -> None:
    for tensor, array in zip(tensors, expected, strict=True):
        check(kind, tensor, array)


@pytest.fixture(params=MODULES)
def dist(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.ranks(3)
def test_all_gather_of_different_shapes_into_a_tuple(rank: int, world_size: int) -> None:
    with world():
        outputs = tuple(zeros("mindspore", (ROWS[other], 2)) for other in range(3))
        mint.all_gather(outputs, make("mindspore", numbers(rank, (ROWS[rank], 2))))
        check_all("mindspore", outputs, [numbers(other, (ROWS[other], 2)) for other in range(3)])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_all_gather_into_tensor_uneven(rank: int, world_size: int, kind: str, dist: str) -> None:
    with world():
        rows = ROWS[:world_size]
        output = zeros(kind, (sum(rows), 2))
        tensor = make(kind, numbers(rank, (rows[rank], 2)))
        assert MODULES[dist].all_gather_into_tensor_uneven(output, tensor, list(rows)) is None
        check(kind, output, np.concatenate([numbers(other, (rows[other], 2)) for other in range(world_size)]))


@pytest.mark.ranks(2)
def test_all_gather_into_tensor_uneven_of_equal_parts(rank: int, world_size: int) -> None:
    with world():
        output = zeros("mindspore", (4, 2))
        mint.all_gather_into_tensor_uneven(output, make("mindspore", numbers(rank, (2, 2))))
        check("mindspore", output, np.concatenate(of_all(2, (2, 2))))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["max", "avg"])
def test_reduce_scatter_tensor(rank: int, world_size: int, op: str, dist: str) -> None:
    with world():
        output = zeros("mindspore", (2, 3))
        tensor = make("mindspore", numbers(rank, (2 * world_size, 3)))
        assert MODULES[dist].reduce_scatter_tensor(output, tensor, op) is None
        reduced = REDUCTIONS[op](of_all(world_size, (2 * world_size, 3)), axis=0)
        check("mindspore", output, reduced[2 * rank : 2 * rank + 2])
        check("mindspore", tensor, numbers(rank, (2 * world_size, 3)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["sum", "min", "max", "avg"])
def test_reduce_scatter_tensor_uneven(rank: int, world_size: int, op: str, dist: str) -> None:
    with world():
        rows = ROWS[:world_size]
        output = zeros("numpy", (rows[rank], 2))
        tensor = numbers(rank, (sum(rows), 2))
        assert MODULES[dist].reduce_scatter_tensor_uneven(output, tensor, rows, op) is None
        reduced = REDUCTIONS[op](of_all(world_size, (sum(rows), 2)), axis=0)
        check("numpy", output, reduced[sum(rows[:rank]) : sum(rows[: rank + 1])])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("kind", KINDS)
def test_reduce_scatter(rank: int, world_size: int, kind: str, dist: str) -> None:
    with world():
        output = zeros(kind, (2, 3))
        inputs = [make(kind, numbers(10 * rank + to, (2, 3))) for to in range(world_size)]
        assert MODULES[dist].reduce_scatter(output, inputs, "max") is None
        check(kind, output, np.max([numbers(10 * other + rank, (2, 3)) for other in range(world_size)], axis=0))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("op", ["max", "avg"])
def test_reduce_leaves_the_others_as_they_are(rank: int, world_size: int, op: str, dist: str) -> None:
    with world():
        tensor = make("mindspore", numbers(rank, (2, 3)))
        assert MODULES[dist].reduce(tensor, 1, op) is None
        reduced = REDUCTIONS[op](of_all(world_size, (2, 3)), axis=0)
        check("mindspore", tensor, reduced if rank == 1 else numbers(rank, (2, 3)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("name", ["ops", "ops.communication", "distributed"])
def test_gather_into_tensor_and_scatter_tensor(rank: int, world_size: int, name: str) -> None:
    module = WITH_MORE[name]
    with world():
        gathered = zeros("mindspore", (6, 3) if rank == 2 else (1,))
        assert module.gather_into_tensor(gathered, make("mindspore", numbers(rank, (2, 3))), 2) is None
        check("mindspore", gathered, np.concatenate(of_all(3, (2, 3))) if rank == 2 else np.zeros(1, "float32"))
        scattered = zeros("mindspore", (2, 3))
        assert module.scatter_tensor(scattered, make("mindspore", numbers(rank, (6, 3))), 1) is None
        check("mindspore", scattered, numbers(1, (6, 3))[2 * rank : 2 * rank + 2])


@pytest.mark.ranks(3)
@pytest.mark.parametrize("name", ["ops.communication", "comm_func"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_to_all_v_c(rank: int, world_size: int, name: str, kind: str) -> None:
    """Rank i sends (i + 2 * j) % 3 rows to rank j, which is none for some."""
    module = WITH_MORE[name]
    with world():
        matrix = [(source + 2 * to) % 3 for source in range(3) for to in range(3)]
        sent = matrix[3 * rank : 3 * rank + 3]
        output = zeros(kind, (sum(matrix[rank::3]), 2))
        tensor = make(kind, numbers(rank, (sum(sent), 2)))
        assert module.all_to_all_v_c(output, tensor, matrix) is None
        expected = []
        for source in range(3):
            rows = matrix[3 * source : 3 * source + 3]
            start = sum(rows[:rank])
            expected.append(numbers(source, (sum(rows), 2))[start : start + rows[rank]])
        check(kind, output, np.concatenate(expected))


@pytest.mark.ranks(1)
def test_a_world_of_one(rank: int, world_size: int) -> None:
    with world():
        last, rows = world_size - 1, ROWS[:world_size]
        everything = of_all(world_size, (2, 3))
        outputs = [zeros("mindspore", (2, 3)) for _ in range(world_size)]
        mint.all_gather(outputs, make("mindspore", numbers(rank, (2, 3))))
        check_all("mindspore", outputs, everything)
        mint.gather(make("mindspore", 2 * numbers(rank, (2, 3))), outputs, last)
        check_all("mindspore", outputs, [(2 if rank == last else 1) * array for array in everything])
        tensor = zeros("mindspore", (2, 3))
        mint.scatter(tensor, [make("mindspore", numbers(10 * rank + to, (2, 3))) for to in range(world_size)], last)
        check("mindspore", tensor, numbers(10 * last + rank, (2, 3)))
        mint.broadcast(tensor, last)
        check("mindspore", tensor, numbers(11 * last, (2, 3)))
        tensor = make("mindspore", numbers(rank, (2, 3)))
        mint.reduce(tensor, last)
        check("mindspore", tensor, np.sum(everything, axis=0) if rank == last else everything[rank])
        output = zeros("mindspore", (sum(rows), 2))
        mint.all_gather_into_tensor_uneven(output, make("mindspore", numbers(rank, (rows[rank], 2))), list(rows))
        check("mindspore", output, np.concatenate([numbers(other, (rows[other], 2)) for other in range(world_size)]))
        output = zeros("mindspore", (rows[rank], 2))
        mint.reduce_scatter_tensor_uneven(output, make("mindspore", numbers(rank, (sum(rows), 2))), rows)
        reduced = np.sum(of_all(world_size, (sum(rows), 2)), axis=0)
        check("mindspore", output, reduced[sum(rows[:rank]) : sum(rows[: rank + 1])])


@pytest.mark.ranks(4)
def test_a_subgroup_is_asked_for_the_worlds_ranks(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        members = [1, 2]
        group = module.new_group(members)
        if rank in members:
            tensor = make("mindspore", numbers(rank, (2, 3)))
            module.broadcast(tensor, 2, group)
            check("mindspore", tensor, numbers(2, (2, 3)))
            tensor = make("mindspore", numbers(rank, (2, 3)))
            module.reduce(tensor, 2, "sum", group)
            check("mindspore", tensor, numbers(1, (2, 3)) + numbers(2, (2, 3)) if rank == 2 else numbers(1, (2, 3)))
            outputs = [zeros("mindspore", 2) for _ in range(2)]
            module.gather(make("mindspore", numbers(rank, 2)), outputs, 2, group)
            check_all(
                "mindspore", outputs, [numbers(1, 2), numbers(2, 2)] if rank == 2 else [np.zeros(2, "float32")] * 2
            )
            tensor = zeros("mindspore", 2)
            module.scatter(tensor, [make("mindspore", numbers(10 * rank + to, 2)) for to in range(2)], 2, group)
            check("mindspore", tensor, numbers(20 + members.index(rank), 2))
            module.all_gather(outputs, make("mindspore", numbers(rank, 2)), group)
            check_all("mindspore", outputs, [numbers(1, 2), numbers(2, 2)])
            module.reduce_scatter_tensor(tensor, make("mindspore", numbers(rank, 4)), group=group)
            own = members.index(rank)
            check("mindspore", tensor, (numbers(1, 4) + numbers(2, 4))[2 * own : 2 * own + 2])


@pytest.mark.ranks(2)
def test_asynchronous_calls(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        outputs = [zeros("mindspore", 3) for _ in range(2)]
        gathered = [zeros("mindspore", 3) for _ in range(2)]
        tensors = [make("mindspore", numbers(rank, 3)) for _ in range(3)]
        part = zeros("mindspore", 3)
        handles = [
            module.all_gather(outputs, tensors[0], async_op=True),
            module.broadcast(tensors[1], 1, async_op=True),
            module.reduce(tensors[2], 0, async_op=True),
            module.gather(make("mindspore", numbers(rank, 3)), gathered, 1, async_op=True),
            module.scatter(part, [make("mindspore", numbers(10 * rank + to, 3)) for to in range(2)], async_op=True),
            module.reduce_scatter(
                zeros("mindspore", 3), list(map(make, ["mindspore"] * 2, of_all(2, 3))), async_op=True
            ),
        ]
        for handle in reversed(handles):
            assert isinstance(handle, comm_func.CommHandle)
            assert handle.wait() is None
        check_all("mindspore", outputs, of_all(2, 3))
        check("mindspore", tensors[1], numbers(1, 3))
        check("mindspore", tensors[2], numbers(0, 3) + numbers(1, 3) if rank == 0 else numbers(1, 3))
        check_all("mindspore", gathered, of_all(2, 3) if rank == 1 else [np.zeros(3, "float32")] * 2)
        check("mindspore", part, numbers(rank, 3))


def test_the_cached_answers_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_ID", "3")
    monkeypatch.setenv("RANK_SIZE", "7")
    assert (distributed.get_cache_group_rank(), distributed.get_cache_group_size()) == (3, 7)


@pytest.mark.ranks(2)
def test_the_cached_answers(rank: int, world_size: int) -> None:
    with world():
        name = distributed.new_group([1])
        assert (distributed.get_cache_group_rank(), distributed.get_cache_group_size()) == (rank, 2)
        assert (distributed.get_cache_group_rank(name), distributed.get_cache_group_size(name)) == (rank - 1, 1)
        with pytest.raises(TypeError, match="group must be a str"):
            distributed.get_cache_group_rank(None)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(RuntimeError, match="no group named"):
            distributed.get_cache_group_size("no such group")


@pytest.mark.ranks(2)
@pytest.mark.parametrize("taken", ["assign_value", "set_"])
def test_memory_that_is_taken_from_a_tensor_on_its_way(rank: int, world_size: int, taken: str) -> None:
    with world():
        apart = mint.new_group([0, 1])
        tensor, size = mindspore.Tensor(np.full(3_000_000, rank + 1.0, "float32")), 3_000_000
        if rank == 0:
            handle = mint.isend(tensor, 1)
            getattr(tensor, taken)(mindspore.Tensor(np.ones(size, "float32")))
            garbage = np.full(size, -1.0, "float32")
            mint.barrier(apart)
            handle.wait()
            assert garbage.max() == -1.0
        else:
            mint.barrier(apart)
            mint.recv(tensor, 0)
            assert tensor.asnumpy().min() == tensor.asnumpy().max() == 1.0
