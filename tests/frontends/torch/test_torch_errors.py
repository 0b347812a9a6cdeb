"""Wrong calls through the torch frontend: torch's class and ours, on every rank, and the group goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import torch
from torch_world import assert_usable, world
from wrong_calls import assert_refused, named

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, ShimError

ONE = np.ones(2)
NAMELESS = type("ReduceOp", (), {"__module__": "torch.distributed"})()


def assert_told(
    kind: type[Exception], words: str | None, rank: int, wrong: Callable[..., Any], *arguments: Any
) -> None:
    """*wrong* raises *kind*, which is ours too and names the function and the rank."""
    told = assert_refused(kind, words, wrong, *arguments)
    assert told.startswith("torch.distributed.")
    assert f"rank {rank} of" in told


WRONG_ARGUMENTS: dict[str, tuple[type[Exception], str, Callable[[int, int], Any]]] = {
    "tuple of outputs": (TypeError, "tensor_list", lambda rank, n: dist.all_gather((ONE,) * n, ONE)),
    "no list": (TypeError, "tensor_list", lambda rank, n: dist.all_gather(None, ONE)),
    "list too short": (ValueError, "tensor_list", lambda rank, n: dist.all_gather([np.ones(2)], ONE)),
    "empty list": (ValueError, "tensor_list", lambda rank, n: dist.all_gather([], ONE)),
    "no tensor": (TypeError, "tensor", lambda rank, n: dist.all_reduce([1.0, 2.0])),
    "no tensor in the list": (TypeError, "tensor_list", lambda rank, n: dist.all_gather([1] * n, ONE)),
    "dtypes differ": (
        ValueError,
        "tensor_list",
        lambda rank, n: dist.all_gather([np.ones(2, "int64") for _ in range(n)], ONE),
    ),
    "dtype in one place differs": (
        ValueError,
        "tensor_list",
        lambda rank, n: dist.all_gather([np.ones(2) for _ in range(n - 1)] + [np.ones(2, "int64")], ONE),
    ),
    "dtypes of single": (ValueError, "output", lambda rank, n: dist.all_to_all_single(np.ones(n, "int64"), np.ones(n))),
    "complex into integers": (
        ValueError,
        "output_tensor_list",
        lambda rank, n: dist.all_to_all([np.ones(1, "int64") for _ in range(n)], [np.ones(1, "complex64")] * n),
    ),
    "tuple of inputs": (
        TypeError,
        "input_tensor_list",
        lambda rank, n: dist.all_to_all([np.ones(1) for _ in range(n)], (np.ones(1),) * n),
    ),
    "another shape": (
        ValueError,
        "output_tensor",
        lambda rank, n: dist.all_gather_single(np.ones((2, n)).T[None], ONE),
    ),
    "bytes, which are a vector, for matrices": (
        ValueError,
        r"output_tensor must have shape .* for input_tensor of shape \(1, 2\)",
        lambda rank, n: dist.all_gather_single(bytearray(2 * n), np.ones((1, 2), "uint8")),
    ),
    "too large": (ValueError, "output_tensor", lambda rank, n: dist.all_gather_single(np.ones((n + 1, 2)), ONE)),
    "another input shape": (ValueError, "input", lambda rank, n: dist.reduce_scatter_single(ONE, np.ones((1, n, 2)))),
    "rows not divisible": (
        ValueError,
        "divide|divisible|equal",
        lambda rank, n: dist.all_to_all_single(np.ones(n + 1), np.ones(n + 1)),
    ),
    "splits do not add up": (
        ValueError,
        "input_split_sizes",
        lambda rank, n: dist.all_to_all_single(np.ones(n), np.ones(n), [1] * n, [2] * n),
    ),
    "too few splits": (
        ValueError,
        "output_split_sizes",
        lambda rank, n: dist.all_to_all_single(np.ones(n), np.ones(n), [n], [1] * n),
    ),
    "negative splits": (
        ValueError,
        "input_split_sizes",
        lambda rank, n: dist.all_to_all_single(np.ones(n), np.ones(n), None, [-1, n + 1] + [0] * (n - 2)),
    ),
    "splits of another type": (
        TypeError,
        "output_split_sizes",
        lambda rank, n: dist.all_to_all_single(np.ones(n), np.ones(n), "ab", None),
    ),
    "list for the output": (TypeError, "output_tensor", lambda rank, n: dist.all_gather_single([np.ones(2)] * n, ONE)),
    "list for the input": (TypeError, "input", lambda rank, n: dist.reduce_scatter_single(np.ones(2), [ONE] * n)),
    "list to exchange": (
        TypeError,
        "output",
        lambda rank, n: dist.all_to_all_single([np.ones(2) for _ in range(n)], np.ones(2 * n)),
    ),
    "tag is text": (TypeError, "tag", lambda rank, n: dist.send(np.ones(2), (rank + 1) % n, tag="a")),
    "tag is text in recv": (TypeError, "tag", lambda rank, n: dist.recv(np.ones(2), tag=1.5)),
    "op is text": (TypeError, "op", lambda rank, n: dist.all_reduce(np.ones(2), "sum")),
    "op is a number": (TypeError, "op", lambda rank, n: dist.all_reduce(np.ones(2), 1)),
    "op is None": (TypeError, "op", lambda rank, n: dist.all_reduce(np.ones(2), None)),
    "op has torch's class and no name of its": (TypeError, "op", lambda rank, n: dist.all_reduce(np.ones(2), NAMELESS)),
    "factor missing": (ValueError, "op", lambda rank, n: dist.all_reduce(np.ones(2), dist.ReduceOp.PREMUL_SUM)),
    "bits of floats": (ValueError, "op", lambda rank, n: dist.all_reduce(np.ones(2), dist.ReduceOp.BAND)),
    "average of integers": (ValueError, "op", lambda rank, n: dist.all_reduce(np.ones(2, int), dist.ReduceOp.AVG)),
    "no source": (ValueError, "src", lambda rank, n: dist.broadcast(np.ones(2))),
    "two sources": (ValueError, "group_src", lambda rank, n: dist.broadcast(np.ones(2), 0, group_src=0)),
    "source outside": (ValueError, "9", lambda rank, n: dist.broadcast(np.ones(2), 9)),
    "group source outside": (ValueError, "9", lambda rank, n: dist.broadcast(np.ones(2), group_src=9)),
    "source is text": (TypeError, "src", lambda rank, n: dist.broadcast(np.ones(2), "0")),
    "send to oneself": (ValueError, "dst", lambda rank, n: dist.send(np.ones(2), rank)),
    "receive from oneself": (ValueError, "src", lambda rank, n: dist.recv(np.ones(2), rank)),
    "send to nobody": (ValueError, "dst", lambda rank, n: dist.send(np.ones(2))),
    "slots missing": (IndexError, "object_list", lambda rank, n: dist.all_gather_object([None] * (n - 1), 1)),
    "not picklable": (TypeError, "obj", lambda rank, n: dist.all_gather_object([None] * n, lambda: 1)),
}
for name in ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR"):
    WRONG_ARGUMENTS[f"{name} of complex"] = (
        ValueError,
        "op",
        lambda rank, n, op=name: dist.all_reduce(np.ones(2, "complex64"), getattr(dist.ReduceOp, op)),
    )


@pytest.mark.ranks(3)
def test_wrong_arguments_on_every_rank(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, words, wrong) in WRONG_ARGUMENTS.items():
            with named(name):
                assert_told(kind, words, rank, wrong, rank, world_size)
                dist.barrier()
                assert_usable(rank, world_size)


# What one rank does, the class of error it gets, and what the others do meanwhile.
DISAGREEMENTS: dict[str, tuple[type[Exception], Callable[[int], Any], Callable[[int], Any]]] = {
    "tuple": (
        TypeError,
        lambda n: dist.all_gather((ONE,) * n, ONE),
        lambda n: dist.all_gather([np.ones(2) for _ in range(n)], ONE),
    ),
    "root": (ValueError, lambda n: dist.broadcast(np.ones(2), 7), lambda n: dist.broadcast(np.ones(2), 0)),
    "op": (TypeError, lambda n: dist.all_reduce(np.ones(2), "sum"), lambda n: dist.all_reduce(np.ones(2))),
    "output's shape": (
        ValueError,
        lambda n: dist.all_gather_single(np.ones((2, n, 1)), ONE),
        lambda n: dist.all_gather_single(np.ones((n, 2)), ONE),
    ),
    "object": (
        TypeError,
        lambda n: dist.all_gather_object([None] * n, lambda: 1),
        lambda n: dist.all_gather_object([None] * n, 1),
    ),
    "another shape": (MismatchError, lambda n: dist.all_reduce(np.ones(3)), lambda n: dist.all_reduce(np.ones(2))),
    "another function": (MismatchError, lambda n: dist.barrier(), lambda n: dist.all_reduce(np.ones(2))),
    "another root": (MismatchError, lambda n: dist.broadcast(np.ones(2), 1), lambda n: dist.broadcast(np.ones(2), 0)),
    "another op": (
        MismatchError,
        lambda n: dist.all_reduce(np.ones(2), dist.ReduceOp.MAX),
        lambda n: dist.all_reduce(np.ones(2), dist.ReduceOp.MIN),
    ),
}


@pytest.mark.ranks(3)
def test_one_wrong_rank_is_told_to_all(rank: int, world_size: int) -> None:
    with world():
        for name, (kind, wrong, right) in DISAGREEMENTS.items():
            with named(name):
                if rank == 1:
                    assert_told(kind, None, rank, wrong, world_size)
                else:
                    assert_told(MismatchError, None, rank, right, world_size)
                assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_the_list_belongs_to_the_root_alone(rank: int, world_size: int) -> None:
    with world():
        tensors = [np.ones(2) for _ in range(world_size)]
        for wrong in (lambda: dist.gather(ONE, tensors), lambda: dist.scatter(np.ones(2), tensors)):
            assert_told(*((ValueError, "_list must not be given") if rank == 1 else (MismatchError, None)), rank, wrong)
        for wrong in (lambda: dist.gather(ONE), lambda: dist.scatter(np.ones(2))):
            assert_told(*((ValueError, "_list must be given") if rank == 0 else (MismatchError, None)), rank, wrong)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_accelerators_that_are_not_there_are_refused(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(NotImplementedError, match=r"must be None or the CPU.*accelerator"):
            dist.barrier(device_ids=["cuda:0"])
        for device_ids in ([], [rank], rank, ["cpu"]):
            dist.barrier(device_ids=device_ids)
        dist.barrier(timeout=2.5)  # seconds, as torch's bindings take them
        dist.group.WORLD.set_timeout(1800.0)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_a_barrier_ends_at_its_timeout(rank: int) -> None:
    with world():
        if rank == 0:
            with pytest.raises(TimeoutError, match="timeout has passed"):
                dist.barrier(timeout=timedelta(seconds=0.3))
        else:
            time.sleep(1.0)


@pytest.mark.ranks(2)
def test_a_mismatch_in_the_background_is_told_by_its_work(rank: int, world_size: int) -> None:
    with world():
        work = dist.all_reduce(np.ones(2 + rank), async_op=True)
        with pytest.raises(MismatchError):
            work.wait()
        assert work.is_completed()
        assert not work.is_success()
        assert isinstance(work.exception(), MismatchError)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_a_wait_of_its_own_timeout_can_be_repeated(rank: int) -> None:
    with world():
        if rank == 1:
            time.sleep(0.5)
        work = dist.barrier(async_op=True)
        if rank == 0:
            with pytest.raises(TimeoutError):
                work.wait(timedelta(seconds=0.05))
            assert not work.is_completed()
        assert work.wait() is True


@pytest.mark.ranks(2)
def test_a_message_of_another_size_is_refused(rank: int, world_size: int) -> None:
    with world():
        if rank == 0:
            dist.send(np.ones(3), 1)
        else:
            with pytest.raises(ShimError, match=r"torch\.distributed\.recv"):
                dist.recv(np.ones(2), 0)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_a_future_raises_what_ended_its_work(rank: int) -> None:
    with world():
        future = dist.all_reduce(torch.ones(2 + rank), async_op=True).get_future()
        with pytest.raises(RuntimeError, match=r"MismatchError: (.|\n)*the ranks disagree"):
            future.wait()


@pytest.mark.ranks(2)
def test_dtypes_of_the_roots_list(rank: int, world_size: int) -> None:
    with world():
        wrong = [np.ones(2, "float32") for _ in range(world_size)] if rank == 0 else None
        for call in (lambda: dist.gather(np.ones(2), wrong), lambda: dist.scatter(np.ones(2), wrong)):
            assert_told(ValueError if rank == 0 else MismatchError, None, rank, call)
        assert_usable(rank, world_size)


@pytest.mark.ranks(2)
def test_numbers_that_no_machine_word_holds(rank: int) -> None:
    dist.init_process_group()
    splits = [2**63, 0] if rank == 0 else [2, 2]
    kind, told = [(ValueError, "input_split_sizes"), (RuntimeError, "disagree")][rank]
    with pytest.raises(kind, match=told):
        dist.all_to_all_single(np.zeros(4), np.ones(4), None, splits)
    for tag in (2**40, 2**70):
        with pytest.raises(ValueError, match="tag must fit into 32 bits"):
            dist.send(np.ones(1), 1 - rank, tag=tag)
    dist.barrier()


@pytest.mark.ranks(1)
def test_ctrl_c_while_a_tensor_is_read_is_not_swallowed() -> None:
    class Interrupting:
        def __dlpack__(self, **options: Any) -> None:
            raise KeyboardInterrupt

    dist.init_process_group()
    with pytest.raises(KeyboardInterrupt):
        dist.all_reduce(Interrupting())
