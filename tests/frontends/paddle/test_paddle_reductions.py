"""Reducing to all ranks, to one, and each rank's part, with every reduce op of the version, in the world and in groups."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from paddle_world import KINDS, REDUCTIONS, VERSIONS, world
from rank_numbers import check, make, numbers
from wrong_calls import assert_refused

from shim.errors import MismatchError
from shim.frontends.paddle_2.distributed import communication as communication_2
from shim.frontends.paddle_2.distributed.communication.reduce_scatter import _reduce_scatter_base
from shim.frontends.paddle_2.distributed.communication.reduce_scatter import _reduce_scatter_base as base_2
from shim.frontends.paddle_3.distributed import communication as communication_3
from shim.frontends.paddle_3.distributed.communication.reduce_scatter import _reduce_scatter_base as base_3

FORMS = ("list", "tuple", "concatenated", "stacked")
VERSIONS_AND_OPS = [(version, op) for version in VERSIONS for op in REDUCTIONS if (version, op) != ("2", "AVG")]


def parts_of(rank: int, count: int, shape: tuple[int, ...] = (2, 3), dtype: str = "float64") -> np.ndarray:
    """What *rank* gives to each of *count* ranks."""
    return np.stack([numbers(rank + 3 * other, shape, dtype) for other in range(count)])


def in_form(form: str, kind: str, parts: np.ndarray) -> Any:
    if form in ("list", "tuple"):
        tensors = [make(kind, part.copy()) for part in parts]
        return tensors if form == "list" else tuple(tensors)
    return make(kind, parts if form == "stacked" else parts.reshape(-1, *parts.shape[2:]))


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize(("version", "op"), VERSIONS_AND_OPS)
def test_reduce_to_every_root(rank: int, world_size: int, version: str, op: str) -> None:
    with world(version) as dist:
        expected = REDUCTIONS[op]([numbers(other, (2, 5)) for other in range(world_size)], axis=0)
        for dst in range(world_size):
            tensor = numbers(rank, (2, 5))
            task = dist.reduce(tensor, dst, getattr(dist.ReduceOp, op))
            assert (task.is_sync(), task.is_completed(), task.wait()) == (True, True, True)
            check("numpy", tensor, expected if rank == dst else numbers(rank, (2, 5)))


@pytest.mark.ranks(3)
@pytest.mark.parametrize(("version", "op"), VERSIONS_AND_OPS)
@pytest.mark.parametrize("form", FORMS)
def test_reduce_scatter(rank: int, world_size: int, version: str, op: str, form: str) -> None:
    with world(version) as dist:
        inputs = in_form(form, "numpy", parts_of(rank, world_size))
        output = np.zeros((2, 3))
        task = dist.reduce_scatter(output, inputs, getattr(dist.ReduceOp, op), sync_op=False)
        assert (task.is_sync(), task.wait()) == (False, True)
        check(
            "numpy", output, REDUCTIONS[op]([parts_of(other, world_size)[rank] for other in range(world_size)], axis=0)
        )


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["concatenated", "stacked"])
def test_reduce_scatter_base(rank: int, world_size: int, version: str, kind: str, form: str) -> None:
    with world(version) as dist:
        output = make(kind, np.zeros((2, 3)))
        base = {"2": base_2, "3": base_3}[version]
        base(output, in_form(form, kind, parts_of(rank, world_size)), dist.ReduceOp.MAX)
        check(kind, output, np.max([parts_of(other, world_size)[rank] for other in range(world_size)], axis=0))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_group(rank: int, version: str, kind: str) -> None:
    with world(version) as dist:
        group = dist.new_group([0, 2])
        if rank != 1:
            tensor = make(kind, numbers(rank, 4))
            dist.reduce(tensor, 2, group=group)
            check(kind, tensor, numbers(0, 4) + numbers(2, 4) if rank == 2 else numbers(rank, 4))
            output = make(kind, np.zeros((2, 3)))
            dist.reduce_scatter(output, in_form("list", kind, parts_of(rank, 2)), group=group)
            check(kind, output, sum(parts_of(other, 2)[rank // 2] for other in (0, 2)))
        dist.barrier()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("count", [2, 300_000])
def test_the_output_may_be_one_of_the_inputs(rank: int, world_size: int, count: int) -> None:
    """As in paddle's own example, where it is the part that goes to rank 0."""
    with world() as dist:
        inputs = [numbers(rank + 3 * other, count) for other in range(world_size)]
        dist.reduce_scatter(inputs[0], inputs)
        check("numpy", inputs[0], sum(numbers(other + 3 * rank, count) for other in range(world_size)))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_halves_are_summed_in_float32_and_rounded_once(rank: int, version: str) -> None:
    import paddle

    with world(version) as dist:
        tensor = paddle.full([3], 1.5 + 2048 * rank, "float16")
        dist.all_reduce(tensor)
        check("paddle", tensor, np.full(3, 2051, "float16"))  # halves next to it: 2050 and 2052
        tensor = paddle.full([3], 40000.0 * (1 - 2 * rank), "float16")
        dist.all_reduce(tensor)
        check("paddle", tensor, np.zeros(3, "float16"))


@pytest.mark.ranks(2)
def test_views_and_empty_tensors(rank: int, world_size: int) -> None:
    import paddle

    with world() as dist:
        whole = paddle.to_tensor(numbers(rank, (4, 3)))
        dist.reduce(whole.t()[::2], 1)  # columns 0 and 2
        expected = numbers(rank, (4, 3))
        if rank == 1:
            expected[:, ::2] += numbers(0, (4, 3))[:, ::2]
        check("paddle", whole, expected)
        empty = paddle.zeros([0, 3])
        dist.reduce_scatter(empty, [paddle.zeros([0, 3])] * world_size)
        dist.all_reduce(empty)
        assert empty.shape == [0, 3]


@pytest.mark.ranks(2)
def test_paddle_2_has_no_average(rank: int, world_size: int) -> None:
    with world("2") as dist:
        one = np.ones(2)
        for call in (
            lambda: dist.all_reduce(one, dist.ReduceOp.AVG),
            lambda: dist.reduce(one, 0, dist.ReduceOp.AVG),
            lambda: dist.reduce_scatter(one, [one] * world_size, dist.ReduceOp.AVG),
            lambda: _reduce_scatter_base(one, np.ones(4), dist.ReduceOp.AVG),
            lambda: dist.stream.all_reduce(one, dist.ReduceOp.AVG),
            lambda: dist.stream.reduce(one, 0, dist.ReduceOp.AVG),
            lambda: dist.stream.reduce_scatter(one, [one] * world_size, dist.ReduceOp.AVG),
        ):
            with pytest.raises(ValueError, match=r"PROD \(3\), got 4") as caught:
                call()
            assert not isinstance(caught.value, RuntimeError)
        dist.barrier()


def test_the_names_by_their_other_paths() -> None:
    """A module called like a function of the package above it must not hide the function."""
    for dist, communication, base in (
        (VERSIONS["2"], communication_2, base_2),
        (VERSIONS["3"], communication_3, base_3),
    ):
        assert communication.reduce_scatter is dist.reduce_scatter
        assert communication.reduce is dist.reduce
        assert communication.batch_isend_irecv is dist.batch_isend_irecv
        assert getattr(dist, "_reduce_scatter_base", base) is base


class OtherReduceOp(enum.IntEnum):
    """Numbered as torch numbers its reduce ops: 1 is AVG there and MAX here."""

    AVG = 1


@pytest.mark.ranks(2)
@pytest.mark.parametrize("op", [5, -1, "sum", None, True, np.int64(1), OtherReduceOp.AVG, [0]])
def test_wrong_ops(rank: int, world_size: int, op: Any) -> None:
    with world() as dist:
        one, parts = np.ones(2), [np.ones(2)] * world_size
        for kind, call in (
            (ValueError, lambda: dist.reduce(one, 0, op)),
            (RuntimeError, lambda: dist.reduce_scatter(one, parts, op)),
            (RuntimeError, lambda: base_3(one, np.ones(2 * world_size), op)),
            (ValueError, lambda: dist.stream.reduce_scatter(one, parts, op)),
        ):
            assert_refused(kind, "op must be one of", call)
        with pytest.raises(RuntimeError, match=r"PROD \(3\), got 4"):
            base_3(one, np.ones(2 * world_size), dist.ReduceOp.AVG)
        dist.barrier()
        check("numpy", one, np.ones(2))


@pytest.mark.ranks(3)
def test_wrong_sizes_are_refused_on_every_rank(rank: int, world_size: int) -> None:
    with world() as dist:
        for kind, wrong, words in (
            (ValueError, lambda: dist.reduce(np.ones(2), 7), "rank 7"),
            (ValueError, lambda: dist.reduce_scatter(np.ones(2), [np.ones(2)] * (world_size + 1)), "tensor_list"),
            (ValueError, lambda: dist.reduce_scatter(np.ones(2), []), "tensor_list"),
            (ValueError, lambda: dist.reduce_scatter(np.ones(2), np.ones(2 * world_size + 1)), "tensor_list"),
            (ValueError, lambda: dist.reduce_scatter(np.ones(2), np.ones(2 * world_size, int)), "tensor"),
            (ValueError, lambda: dist.reduce_scatter(np.ones(2), [np.ones(3)] * world_size), "tensor"),
        ):
            if rank == 1:
                with pytest.raises(kind, match=words):
                    wrong()
            else:
                with pytest.raises(MismatchError, match="rank 1"):
                    dist.reduce_scatter(np.ones(2), [np.ones(2)] * world_size)
        dist.barrier()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sync_op", [1, 0, None, np.bool_(True), np.bool_(False), "yes"])
def test_whatever_is_true_is_synchronous(rank: int, world_size: int, version: str, sync_op: Any) -> None:
    with world(version) as dist:
        tensor = numbers(rank, 3)
        task = dist.all_reduce(tensor, sync_op=sync_op)
        task.wait()
        assert task.is_sync() == bool(sync_op)
        check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
