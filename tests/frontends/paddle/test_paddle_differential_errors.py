"""Errors and groups of the real Paddle over gloo and of this project, in the same rank processes.

What the real one cannot be asked is at the top of test_paddle_differential.py. A wrong call is made on every rank, and only if
Paddle refuses it before it communicates.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from paddle_real import both, group_in
from paddle_world import paddle_numbers

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(does not belong|is not in group|no group|is not initialized):UserWarning",
)


def one() -> Any:
    return paddle_numbers(0, [2], "float32")


Wrong = Callable[[Any, int], Any]  # given a module and another rank than the caller's own

SAME_ERRORS: dict[str, tuple[type[Exception], Wrong]] = {
    "all_reduce of a list": (ValueError, lambda dist, other: dist.all_reduce([1.0])),
    "all_reduce unknown op": (ValueError, lambda dist, other: dist.all_reduce(one(), 7)),
    "reduce unknown op": (ValueError, lambda dist, other: dist.reduce(one(), 0, 7)),
    "reduce to a rank outside": (ValueError, lambda dist, other: dist.reduce(one(), 9)),
    "reduce_scatter unknown op": (RuntimeError, lambda dist, other: dist.reduce_scatter(one(), [one(), one()], 7)),
    "stream.reduce_scatter unknown op": (
        ValueError,
        lambda dist, other: dist.stream.reduce_scatter(one(), [one(), one()], 7),
    ),
    "broadcast from a rank outside": (ValueError, lambda dist, other: dist.broadcast(one(), 9)),
    "gather to a rank outside": (ValueError, lambda dist, other: dist.gather(one(), None, 9)),
    "scatter from a rank outside": (ValueError, lambda dist, other: dist.scatter(one(), None, 9)),
    "send to a rank outside": (ValueError, lambda dist, other: dist.send(one(), 9)),
    "recv from a rank outside": (ValueError, lambda dist, other: dist.recv(one(), 9)),
    "isend to a rank outside": (ValueError, lambda dist, other: dist.isend(one(), 9)),
    "irecv from a rank outside": (ValueError, lambda dist, other: dist.irecv(one(), 9)),
    "irecv from None": (ValueError, lambda dist, other: dist.irecv(one())),
    "send a list": (ValueError, lambda dist, other: dist.send([1.0], other)),
    "alltoall without output": (RuntimeError, lambda dist, other: dist.alltoall(None, [one()])),
    "alltoall without input": (RuntimeError, lambda dist, other: dist.alltoall([], None)),
    "alltoall of nothing": (RuntimeError, lambda dist, other: dist.alltoall([], [])),
    "alltoall of a tensor and a list": (RuntimeError, lambda dist, other: dist.alltoall(one(), [one(), one()])),
    "P2POp of send": (RuntimeError, lambda dist, other: dist.P2POp(dist.send, one(), other)),
    "P2POp of text": (RuntimeError, lambda dist, other: dist.P2POp("isend", one(), other)),
    "batch of no list": (RuntimeError, lambda dist, other: dist.batch_isend_irecv(None)),
    "batch of no operations": (RuntimeError, lambda dist, other: dist.batch_isend_irecv([1])),
    "send no objects": (ValueError, lambda dist, other: dist.send_object_list([], other)),
    "send None": (ValueError, lambda dist, other: dist.send_object_list(None, other)),
    "send objects to two ranks": (ValueError, lambda dist, other: dist.send_object_list([1], other, None, other)),
    "receive no objects": (ValueError, lambda dist, other: dist.recv_object_list([], other)),
    "receive objects from two ranks": (ValueError, lambda dist, other: dist.recv_object_list([1], other, None, other)),
    "send objects to a rank outside the group": (
        IndexError,
        lambda dist, other: dist.send_object_list([1], None, None, 9),
    ),
    "group rank of a rank outside": (ValueError, lambda dist, other: dist.get_group().get_group_rank(9)),
    "global rank of a rank outside": (IndexError, lambda dist, other: dist.get_group().get_global_rank(9)),
    "waiting for text": (ValueError, lambda dist, other: dist.wait("tensor")),
    "group larger than the world": (AssertionError, lambda dist, other: dist.new_group([0, 1, 2, 3])),
    "group of an unknown backend": (AssertionError, lambda dist, other: dist.new_group(backend="smoke")),
    "destroying what is no group": (
        AssertionError,
        lambda dist, other: dist.destroy_process_group(dist.communication.group.Group(0, 99, [0, 1])),
    ),
    "gloo of one": (AssertionError, lambda dist, other: dist.gloo_init_parallel_env(0, 1, "127.0.0.1:6170")),
    "gloo_barrier without a context": (AssertionError, lambda dist, other: dist.gloo_barrier()),
    "spawn with an unknown option": (ValueError, lambda dist, other: dist.spawn(one, nprocs=1, threads=2)),
    "spawn with an unknown backend": (ValueError, lambda dist, other: dist.spawn(one, nprocs=1, backend="smoke")),
    "unknown argument": (TypeError, lambda dist, other: dist.all_reduce(one(), async_op=True)),
    **{
        f"stream.{name} with the calculation stream": (RuntimeError, call)
        for name, call in {
            "all_gather": lambda dist, other: dist.stream.all_gather([], one(), None, False, True),
            "all_reduce": lambda dist, other: dist.stream.all_reduce(one(), 0, None, False, True),
            "alltoall": lambda dist, other: dist.stream.alltoall([], [one()], None, False, True),
            "alltoall_single": lambda dist, other: dist.stream.alltoall_single(
                one(), one(), None, None, None, False, True
            ),
            "broadcast": lambda dist, other: dist.stream.broadcast(one(), 0, None, False, True),
            "gather": lambda dist, other: dist.stream.gather(one(), [], 0, None, False, True),
            "recv": lambda dist, other: dist.stream.recv(one(), other, None, False, True),
            "reduce": lambda dist, other: dist.stream.reduce(one(), 0, 0, None, False, True),
            "reduce_scatter": lambda dist, other: dist.stream.reduce_scatter(one(), [one()], 0, None, False, True),
            "scatter": lambda dist, other: dist.stream.scatter(one(), None, 0, None, False, True),
            "send": lambda dist, other: dist.stream.send(one(), other, None, False, True),
        }.items()
    },
}


@pytest.mark.differential("paddle", calls=1)
@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("name", SAME_ERRORS)
def test_both_raise_the_same(rank: int, world_size: int, name: str) -> None:
    kind, wrong = SAME_ERRORS[name]
    with both() as (theirs, ours):
        other = (rank + 1) % world_size
        with pytest.raises(kind) as expected:
            wrong(theirs, other)
        assert expected.type is kind
        theirs.barrier()
        with pytest.raises(kind):
            wrong(ours, other)
        ours.barrier()


# What Paddle raises by accident, or does, what is raised here instead, and why.
DIFFERENT: dict[str, tuple[type[Exception] | None, type[Exception], Wrong]] = {
    "an empty batch is refused as what is no batch": (
        IndexError,
        RuntimeError,
        lambda dist, other: dist.batch_isend_irecv([]),
    ),
    "wrong sizes are wrong arguments, not failures of the transport": (
        RuntimeError,
        ValueError,
        lambda dist, other: dist.all_gather([one()], one()),
    ),
    "a group's handle is checked before its attributes are used": (
        AttributeError,
        TypeError,
        lambda dist, other: dist.all_reduce(one(), group="world"),
    ),
    "a timeout is used, so that it must be one": (None, TypeError, lambda dist, other: dist.new_group(timeout="soon")),
    "a group has ranks": (None, ValueError, lambda dist, other: dist.new_group([])),
    "numbers of reduce ops are plain, as True would be MAX": (
        None,
        ValueError,
        lambda dist, other: dist.all_reduce(one(), True),
    ),
}


@pytest.mark.differential("paddle", calls=1)
@pytest.mark.ranks(2)
@pytest.mark.parametrize("reason", DIFFERENT)
def test_intended_differences(rank: int, reason: str) -> None:
    expected, got, wrong = DIFFERENT[reason]
    with both() as (theirs, ours):
        if expected is None:
            wrong(theirs, 1 - rank)
        else:
            with pytest.raises(expected):
                wrong(theirs, 1 - rank)
        theirs.barrier()
        with pytest.raises(got):
            wrong(ours, 1 - rank)
        ours.barrier()


def described(dist: Any, group: Any) -> list[Any]:
    """Everything a group tells but its number and its name, which depend on how many were made before."""
    told = [group.rank, group.ranks, group.nranks, group.world_size, group.is_member()]
    told += [group.get_group_rank(rank) for rank in group.ranks]
    told += [group.get_global_rank(rank) for rank in range(len(group.ranks))]
    told += [dist.get_rank(group), dist.get_world_size(group), group.name == f"_default_pg{group.id or ''}"]
    told += [dist.get_group(group.id) is group, repr(group).replace(str(group.id), "N")]
    return told


@pytest.mark.differential("paddle", calls=13)
@pytest.mark.ranks(3)
def test_groups_tell_the_same(rank: int) -> None:
    with both() as (theirs, ours):
        groups = [group_in(dist, [0, 2]) for dist in (theirs, ours)]
        assert described(ours, groups[1]) == described(theirs, groups[0])
        for dist, group in zip((theirs, ours), groups, strict=True):
            if rank == 1:
                with pytest.raises(RuntimeError):
                    dist.get_backend(group)
            else:
                assert (group.backend, dist.get_backend(group)) == ("GLOO", "GLOO")


@pytest.mark.differential("paddle", calls=4)
@pytest.mark.ranks(2)
def test_a_group_of_one_rank_is_one_here(rank: int) -> None:
    """Intended: Paddle takes the member itself for an outsider."""
    with both() as (theirs, ours):
        minute = datetime.timedelta(minutes=1)
        groups = [dist.new_group([rank], "gloo", minute) for dist in (theirs, ours)]
        assert (groups[0].rank, groups[0].world_size, groups[0].is_member()) == (-1, -1, False)
        assert (groups[1].rank, groups[1].world_size, groups[1].is_member()) == (0, 1, True)
        for dist, group in zip((theirs, ours), groups, strict=True):
            assert (group.nranks, group.ranks) == (1, [rank])
            assert dist.destroy_process_group(group) is None
            assert dist.get_group(group.id) is None
            assert dist.is_initialized()
            with pytest.raises(AssertionError):
                dist.destroy_process_group(group)


@pytest.mark.differential("paddle", calls=13)
@pytest.mark.ranks(2)
def test_the_environment_tells_the_same(rank: int) -> None:
    with both() as (theirs, ours):
        expected, got = theirs.ParallelEnv(), ours.ParallelEnv()
        for name in (
            *("rank", "local_rank", "world_size", "nranks", "device_type", "current_endpoint"),
            *("trainer_endpoints", "nrings", "pg_timeout"),
        ):
            assert getattr(got, name) == getattr(expected, name), name
        assert ours.get_rank() == theirs.get_rank()
        assert ours.get_world_size() == theirs.get_world_size()
        assert ours.create_nccl_config({"commName": "x"}) is theirs.create_nccl_config({"commName": "x"}) is None
        world = [theirs.get_group(), ours.get_group()]
        assert described(ours, world[1]) == described(theirs, world[0])
        assert (world[1].id, world[1].name) == (world[0].id, world[0].name)
