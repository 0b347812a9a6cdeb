"""Wrong calls through the Paddle frontends: paddle's class and ours, on every rank, and the group goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from paddle_world import assert_usable, world
from rank_numbers import check, numbers
from wrong_calls import assert_refused, named

from shim.errors import MismatchError

ONE = np.ones(2)


def assert_told(
    kind: type[Exception], words: str | None, rank: int, wrong: Callable[..., Any], *arguments: Any
) -> None:
    """*wrong* raises *kind*, which is ours too and names the function and the rank."""
    told = assert_refused(kind, words, wrong, *arguments)
    assert told.startswith("paddle.distributed.")
    assert f"rank {rank} of" in told


WRONG_ARGUMENTS: dict[str, tuple[type[Exception], str, Callable[[Any, int], Any]]] = {
    "no tensor": (ValueError, "tensor", lambda dist, n: dist.all_reduce([1.0, 2.0])),
    "op is text": (ValueError, "op", lambda dist, n: dist.all_reduce(np.ones(2), "sum")),
    "op is unknown": (ValueError, "op", lambda dist, n: dist.all_reduce(np.ones(2), 5)),
    "op is a bool": (ValueError, "op", lambda dist, n: dist.all_reduce(np.ones(2), True)),
    "op for complex": (
        ValueError,
        "op",
        lambda dist, n: dist.all_reduce(np.ones(2, "complex64"), dist.ReduceOp.MAX),
    ),
    "average of integers": (ValueError, "op", lambda dist, n: dist.all_reduce(np.ones(2, int), dist.ReduceOp.AVG)),
    "list too short": (ValueError, "tensor_list", lambda dist, n: dist.all_gather([np.ones(2)], ONE)),
    "dtypes of one size": (
        ValueError,
        "tensor_list",
        lambda dist, n: dist.all_gather([np.ones(2, "int64") for _ in range(n)], ONE),
    ),
    "dtypes of one tensor": (ValueError, "tensor_list", lambda dist, n: dist.all_gather(np.ones((n, 2), "int64"), ONE)),
    "sizes differ": (ValueError, "tensor_list", lambda dist, n: dist.all_gather([np.ones(3) for _ in range(n)], ONE)),
    "nothing like it": (ValueError, "tensor", lambda dist, n: dist.all_gather([], [1.0])),
    "empty tuple": (ValueError, "tensor_list", lambda dist, n: dist.all_gather((), ONE)),
    "no output": (RuntimeError, "out_tensor_list", lambda dist, n: dist.alltoall(None, [ONE] * n)),
    "no input": (RuntimeError, "in_tensor_list", lambda dist, n: dist.alltoall([], None)),
    "empty input": (RuntimeError, "in_tensor_list", lambda dist, n: dist.alltoall([], [])),
    "tensor and list": (RuntimeError, "out_tensor_list", lambda dist, n: dist.alltoall(np.ones(n), [ONE] * n)),
    "too few inputs": (ValueError, "in_tensor_list must hold", lambda dist, n: dist.alltoall([], [ONE] * (n - 1))),
    "rows not divisible": (
        ValueError,
        "divide|divisible|equal",
        lambda dist, n: dist.alltoall_single(np.ones(n + 1), np.ones(n + 1)),
    ),
    "splits do not add up": (
        ValueError,
        "in_split_sizes",
        lambda dist, n: dist.alltoall_single(np.ones(n), np.ones(n), [2] * n, [1] * n),
    ),
    "splits of another type": (
        TypeError,
        "out_split_sizes",
        lambda dist, n: dist.alltoall_single(np.ones(n), np.ones(n), None, "ab"),
    ),
    "list to exchange": (
        ValueError,
        "in_tensor",
        lambda dist, n: dist.alltoall_single(np.ones(n), [np.ones(1) for _ in range(n)]),
    ),
    "source outside": (ValueError, "9", lambda dist, n: dist.broadcast(np.ones(2), 9)),
    "source is text": (TypeError, "src", lambda dist, n: dist.broadcast(np.ones(2), "0")),
    "send to nobody": (ValueError, "9", lambda dist, n: dist.send(np.ones(2), 9)),
    "send to oneself": (ValueError, "dst", lambda dist, n: dist.send(np.ones(2), dist.get_rank())),
    "receive from oneself": (ValueError, "src", lambda dist, n: dist.recv(np.ones(2), dist.get_rank())),
    "single dtypes": (ValueError, "out_tensor", lambda dist, n: dist.alltoall_single(np.ones(n, "int64"), np.ones(n))),
}


@pytest.mark.ranks(3)
def test_wrong_arguments_on_every_rank(rank: int, world_size: int) -> None:
    with world() as dist:
        for name, (kind, words, wrong) in WRONG_ARGUMENTS.items():
            with named(name):
                assert_told(kind, words, rank, wrong, dist, world_size)
                dist.barrier()
                assert_usable(dist, rank, world_size)


@pytest.mark.ranks(2)
def test_wait_checks_its_arguments(rank: int) -> None:
    with world() as dist:
        with pytest.raises(TypeError, match="tensor"):
            dist.wait("tensor")
        with pytest.raises(TypeError, match="use_calc_stream"):
            dist.wait(ONE, use_calc_stream=1)
        with pytest.raises(TypeError, match="group"):
            dist.wait(ONE, group=1)


# What one rank does, the class of error it gets, and what the others do meanwhile.
DISAGREEMENTS: dict[str, tuple[type[Exception], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "op": (ValueError, lambda dist: dist.all_reduce(np.ones(2), "sum"), lambda dist: dist.all_reduce(np.ones(2))),
    "missing output": (
        RuntimeError,
        lambda dist: dist.alltoall(None, [ONE] * 3),
        lambda dist: dist.alltoall([np.ones(2) for _ in range(3)], [ONE] * 3),
    ),
    "another shape": (
        MismatchError,
        lambda dist: dist.all_reduce(np.ones(3)),
        lambda dist: dist.all_reduce(np.ones(2)),
    ),
    "another function": (MismatchError, lambda dist: dist.barrier(), lambda dist: dist.all_reduce(np.ones(2))),
}


@pytest.mark.ranks(3)
def test_one_wrong_rank_is_told_to_all(rank: int, world_size: int) -> None:
    with world() as dist:
        for name, (kind, wrong, right) in DISAGREEMENTS.items():
            with named(name):
                if rank == 1:
                    assert_told(kind, None, rank, wrong, dist)
                else:
                    assert_told(MismatchError, None, rank, right, dist)
                assert_usable(dist, rank, world_size)


@pytest.mark.ranks(2)
def test_a_refused_call_leaves_an_empty_list_empty(rank: int, world_size: int) -> None:
    with world() as dist:
        outputs: list[Any] = []
        with pytest.raises(MismatchError):
            dist.all_gather(outputs, np.ones(2 + rank))
        assert outputs == []
        dist.all_gather(outputs, numbers(rank, 2))
        check("numpy", np.stack(outputs), np.stack([numbers(other, 2) for other in range(world_size)]))


@pytest.mark.ranks(2)
def test_a_mismatch_in_the_background_is_raised_by_wait(rank: int, world_size: int) -> None:
    with world() as dist:
        task = dist.all_reduce(np.ones(2 + rank), sync_op=False)
        with pytest.raises(MismatchError):
            task.wait()
        task = dist.all_reduce(np.ones(2 + rank), sync_op=False)
        with pytest.raises(MismatchError):
            dist.wait(np.ones(2))
        assert task.is_completed()
        assert_usable(dist, rank, world_size)


@pytest.mark.ranks(2)
def test_the_list_belongs_to_the_root(rank: int, world_size: int) -> None:
    with world() as dist:
        for wrong, kind in (
            (lambda: dist.gather(ONE), AssertionError),
            (lambda: dist.gather(ONE, [np.ones(2)] if rank == 0 else None), AssertionError),
            (lambda: dist.scatter(np.ones(2)), RuntimeError),
            (lambda: dist.scatter(np.ones(2), []), RuntimeError),
        ):
            assert_told(kind if rank == 0 else MismatchError, None, rank, wrong)
        gathered = [np.zeros(2) for _ in range(world_size)]
        for right in (lambda: dist.gather(ONE, gathered), lambda: dist.scatter(np.ones(2), gathered)):
            if rank == 0:
                right()
            else:
                with pytest.warns(UserWarning, match="_list has no meaning") as caught:
                    right()
                assert caught[0].filename == __file__
        check("numpy", np.stack(gathered), np.ones((2, 2)) * (rank == 0))
        assert_usable(dist, rank, world_size)


RAISING_ARGUMENTS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "sync_op": (True, lambda dist, it: dist.all_reduce(np.ones(2), sync_op=it)),
    "src": (0, lambda dist, it: dist.broadcast(np.ones(2), it)),
    "in_split_sizes": (1, lambda dist, it: dist.alltoall_single(np.ones(2), np.ones(2), [it, 1], [1, 1])),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", RAISING_ARGUMENTS)
def test_what_an_argument_itself_raises_is_told_to_the_others(rank: int, world_size: int, name: str) -> None:
    class Raising:
        def __bool__(self) -> bool:
            raise OverflowError("of its own")

        def __index__(self) -> int:
            raise OverflowError("of its own")

    right, call = RAISING_ARGUMENTS[name]
    with world() as dist:
        with pytest.raises(OverflowError if rank == 1 else MismatchError, match="of its own"):
            call(dist, Raising() if rank == 1 else right)
        assert_usable(dist, rank, world_size)
