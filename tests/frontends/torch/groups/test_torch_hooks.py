"""The hooks of the torch frontend's groups: what they are told, in which order, and what becomes of their errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from rank_numbers import check, numbers, total
from torch_world import assert_in_step, assert_usable, world
from wrong_calls import assert_refused

import shim.frontends.torch.distributed as dist
from shim.errors import EngineError, MismatchError, PeerLostError, RankError, ShimError, StateError

pytestmark = pytest.mark.newest

TWO, FOUR = [(2,)], [(4,)]


def ones(*shapes: int) -> Any:
    return [np.ones(shape) for shape in shapes]


# What torch 2.15's gloo tells of these calls on rank 0 of 2, as (name, async_op, inputs, outputs, root); gather_single, which that has
# not, as other backends do.
CALLS: dict[str, tuple[tuple[Any, ...], Callable[[int], Any]]] = {
    "all_reduce": (("ALLREDUCE", False, TWO, [], -1), lambda rank: dist.all_reduce(np.ones(2))),
    "asynchronous": (("ALLREDUCE", True, TWO, [], -1), lambda rank: dist.all_reduce(np.ones(2), async_op=True)),
    "broadcast": (("BROADCAST", False, TWO, [], 1), lambda rank: dist.broadcast(np.ones(2), 1)),
    "reduce": (("REDUCE", False, TWO, [], 1), lambda rank: dist.reduce(np.ones(2), 1)),
    "all_gather": (("ALLGATHER", False, TWO, TWO * 2, -1), lambda rank: dist.all_gather(ones(2, 2), np.ones(2))),
    "all_gather_single": (
        ("ALLGATHER_BASE", False, TWO, FOUR, -1),
        lambda rank: dist.all_gather_single(np.ones(4), np.ones(2)),
    ),
    "gather": (
        ("GATHER", False, TWO, TWO * 2, 0),
        lambda rank: dist.gather(np.ones(2), None if rank else ones(2, 2)),
    ),
    "gather_single": (
        ("GATHER", False, TWO, FOUR, 0),
        lambda rank: dist.gather_single(np.ones(2), None if rank else np.ones(4)),
    ),
    "scatter": (
        ("SCATTER", False, TWO * 2, TWO, 0),
        lambda rank: dist.scatter(np.ones(2), None if rank else ones(2, 2)),
    ),
    "reduce_scatter": (
        ("REDUCE_SCATTER", False, TWO * 2, TWO, -1),
        lambda rank: dist.reduce_scatter(np.ones(2), ones(2, 2)),
    ),
    "reduce_scatter_single": (
        ("REDUCE_SCATTER_BASE", False, FOUR, TWO, -1),
        lambda rank: dist.reduce_scatter_single(np.ones(2), np.ones(4)),
    ),
    "all_to_all": (("ALLTOALL", False, TWO * 2, TWO * 2, -1), lambda rank: dist.all_to_all(ones(2, 2), ones(2, 2))),
    "all_to_all_single": (
        ("ALLTOALL_BASE", False, TWO, TWO, -1),
        lambda rank: dist.all_to_all_single(np.ones(2), np.ones(2)),
    ),
    "barrier": (("BARRIER", False, [], [], -1), lambda rank: dist.barrier()),
    "method": (("ALLREDUCE", True, TWO, [], -1), lambda rank: dist.group.WORLD.allreduce([np.ones(2)])),
    "send": (("SEND", True, TWO, [], 1), lambda rank: dist.recv(np.ones(2), 0) if rank else dist.send(np.ones(2), 1)),
    "recv": (("RECV", True, [], TWO, 1), lambda rank: dist.send(np.ones(2), 0) if rank else dist.recv(np.ones(2), 1)),
    "from any": (("RECV", True, [], TWO, -1), lambda rank: dist.send(np.ones(2), 0) if rank else dist.recv(np.ones(2))),
}


def told(arguments: Any) -> tuple[Any, ...]:
    shapes = [[tensor.shape for tensor in tensors] for tensors in (arguments.input_tensors, arguments.output_tensors)]
    return arguments.name.name, arguments.async_op, *shapes, arguments.root


@pytest.mark.ranks(2)
def test_hooks_are_told_what_torchs_are(rank: int, world_size: int) -> None:
    with world():
        group, before, after = dist.group.WORLD, [], []
        group.register_pre_hook(1, before.append)
        group.register_post_hook(1, after.append)
        for number, (name, (expected, call)) in enumerate(CALLS.items()):
            work = call(rank)
            assert (len(before), len(after)) == (number + 1, number + 1), name
            if rank == 0:
                assert told(before[-1]) == expected, name
            assert (after[-1].name, after[-1].async_op) == (before[-1].name, before[-1].async_op), name
            assert after[-1].op_id == before[-1].op_id == number
            if work is not None and not isinstance(work, int):
                work.wait()
            assert after[-1].work.wait()
            assert after[-1].work.is_success()


@pytest.mark.ranks(2)
def test_hooks_get_the_tensors_themselves(rank: int, world_size: int) -> None:
    with world():
        group, mine, output = dist.group.WORLD, numbers(rank, 2), np.zeros(4)
        seen: list[Any] = []
        group.register_pre_hook(0, lambda told: seen.append((told.input_tensors[0], told.output_tensors[0].copy())))
        group.register_post_hook(0, lambda told: seen.append(told.work.result()))
        dist.all_gather_single(output, mine)
        (given, blank), results = seen
        assert given is mine
        assert results[0] is output
        check("numpy", blank, np.zeros(4))  # before the call


@pytest.mark.ranks(2)
def test_hooks_are_called_in_the_order_of_their_ids_until_they_are_taken_back(rank: int, world_size: int) -> None:
    with world():
        group, seen = dist.group.WORLD, []
        plain = group.core.engine
        for number in (3, -1, 2, 3):
            group.register_pre_hook(number, lambda _, number=number: seen.append(("pre", number)))
        group.register_post_hook(7, lambda _: seen.append(("post", 7)))
        dist.barrier()
        assert seen == [("pre", -1), ("pre", 2), ("pre", 3), ("post", 7)]
        for number in (-1, 3, 3, 99):
            group.unregister_pre_hook(number)
        seen.clear()
        assert_usable(rank, world_size)
        assert seen == [("pre", 2), ("post", 7)]
        group.unregister_pre_hook(2)
        assert group.core.engine is not plain
        group.unregister_post_hook(7)
        assert group.core.engine is plain  # and a call costs what it did
        seen.clear()
        assert_usable(rank, world_size)
        assert seen == []


@pytest.mark.ranks(3)
def test_hooks_are_those_of_one_group_and_one_rank(rank: int, world_size: int) -> None:
    with world():
        group, seen = dist.new_group([0, 2]), []
        if rank == 2:
            group.register_pre_hook(0, lambda told: seen.append((told.name.name, told.root)))
        if rank != 1:
            dist.broadcast(np.ones(2), 2, group)
        assert_usable(rank, world_size)
        assert seen == ([("BROADCAST", 1)] if rank == 2 else [])  # the root as a rank of the group


@pytest.mark.ranks(2)
def test_what_the_frontend_does_by_itself_is_not_told(rank: int, world_size: int) -> None:
    with world():
        seen: list[Any] = []
        dist.group.WORLD.register_pre_hook(0, seen.append)
        slots: list[Any] = [None, None]
        dist.all_gather_object(slots, rank)
        dist.new_group([0, 1])
        assert (slots, seen) == ([0, 1], [])


class HookError(Exception):
    """What a hook raises."""


def raising(_: Any) -> None:
    raise HookError("from the hook")


def asking_wrongly(_: Any) -> None:
    dist.get_global_rank(dist.group.WORLD, 99)  # type: ignore[arg-type]  # an error of ours


ERRORS = pytest.mark.parametrize(("hook", "kind"), [(raising, HookError), (asking_wrongly, RankError)])


@pytest.mark.ranks(3)
@ERRORS
def test_an_error_of_a_pre_hook_is_raised_in_place_of_the_call(
    rank: int, world_size: int, hook: Callable[[Any], None], kind: type[Exception]
) -> None:
    with world():
        group = dist.group.WORLD
        for turn, call in enumerate((dist.all_reduce, dist.barrier, dist.all_reduce)):
            arguments = () if call is dist.barrier else (np.ones(2),)
            if rank == 1:
                group.register_pre_hook(0, hook)
                with pytest.raises(kind):
                    call(*arguments, async_op=turn == 2)
                group.unregister_pre_hook(0)
            else:
                found = assert_refused(MismatchError, "a hook of the group raised", lambda: call(*arguments))  # noqa: B023
                assert "rank 1" in found
            assert_in_step(rank, world_size)


@pytest.mark.ranks(3)
@ERRORS
def test_an_error_of_a_post_hook_leaves_the_call_done(
    rank: int, world_size: int, hook: Callable[[Any], None], kind: type[Exception]
) -> None:
    with world():
        group = dist.group.WORLD
        for turn in range(3):
            tensor = numbers(rank, 2)
            if rank == 1:
                group.register_post_hook(0, hook)
                with pytest.raises(kind):
                    dist.all_reduce(tensor, async_op=turn == 2)
                group.unregister_post_hook(0)
            else:
                dist.all_reduce(tensor)
            assert_in_step(rank, world_size)
            check("numpy", tensor, total(world_size, 2))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("when", ["pre", "post"])
@pytest.mark.parametrize("name", ["all_reduce", "send"])
def test_the_next_refused_call_is_told_though_a_hook_has_raised(
    rank: int, world_size: int, when: str, name: str
) -> None:
    with world():
        group, turns = dist.group.WORLD, iter([HookError("once")])

        def raise_once(_: Any) -> None:
            for error in turns:
                raise error

        if rank == 1:
            getattr(group, f"register_{when}_hook")(0, raise_once)
            with pytest.raises(HookError):
                dist.send(np.ones(2), 0) if name == "send" else dist.all_reduce(np.ones(2))
            with pytest.raises(ShimError):
                dist.all_gather("no list", np.ones(2))  # type: ignore[arg-type]
        else:
            if name == "all_reduce":
                with contextlib.suppress(MismatchError):  # of a pre hook
                    dist.all_reduce(np.ones(2))
            elif when == "post":
                dist.recv(np.ones(2), 1)
            assert_refused(MismatchError, "refused", lambda: dist.all_gather([np.ones(2), np.ones(2)], np.ones(2)))
        assert_in_step(rank, world_size)


@pytest.mark.ranks(2)
def test_an_error_of_an_abort_hook_hides_neither_the_groups_nor_other_hooks(rank: int, world_size: int) -> None:
    with world():
        group, seen = dist.new_group([0, 1], timeout=timedelta(seconds=0.2)), []
        group.register_abort_hook(0, lambda: raising(None))
        group.register_abort_hook(1, lambda: seen.append(1))
        if rank == 0:
            with pytest.raises(EngineError):
                dist.all_reduce(np.ones(2), group=group)
            assert seen
        dist.barrier()


@pytest.mark.ranks(2)
def test_a_refused_call_has_no_post_hook(rank: int, world_size: int) -> None:
    with world():
        group, seen = dist.group.WORLD, []
        group.register_pre_hook(0, lambda told: seen.append(told.name.name))
        group.register_post_hook(0, lambda told: seen.append("after"))
        with pytest.raises(MismatchError):
            dist.all_reduce(np.ones(2 + rank))
        assert seen == ["ALLREDUCE"]
        assert_usable(rank, world_size)


@pytest.mark.ranks(3)
def test_abort_hooks_are_called_before_the_error_of_a_lost_group(rank: int, world_size: int) -> None:
    with world():
        group, seen = dist.new_group([0, 1, 2]), []
        assert group.supports_abort_hooks
        group.register_abort_hook(2, lambda: seen.append(2))
        group.register_abort_hook(1, lambda: seen.append(1))
        assert_usable(rank, world_size)
        if rank == 2:
            dist.destroy_process_group(group)
        else:
            with pytest.raises(PeerLostError):
                dist.all_reduce(np.ones(2), group=group)
            assert seen == [1, 2]
            with pytest.raises(EngineError):
                dist.all_reduce(np.ones(2), group=group)
            assert seen == [1, 2, 1, 2]
            group.unregister_abort_hook(1)
            with pytest.raises(EngineError):
                group.allreduce([np.ones(2)]).wait()
            assert seen == [1, 2, 1, 2, 2]
            group.unregister_abort_hook(2)


@pytest.mark.ranks(2)
def test_a_wait_that_ends_early_is_no_failure(rank: int, world_size: int) -> None:
    with world():
        seen: list[Any] = []
        dist.group.WORLD.register_abort_hook(0, lambda: seen.append("aborted"))
        if rank == 0:
            work = dist.all_reduce(np.ones(2), async_op=True)
            with pytest.raises(TimeoutError):
                work.wait(timedelta(milliseconds=50))
            assert seen == []
            dist.send(np.ones(1), 1)
            work.wait()
        else:
            dist.recv(np.ones(1), 0)
            dist.all_reduce(np.ones(2))
        assert seen == []


@pytest.mark.ranks(2)
def test_a_call_in_a_hook_is_a_call(rank: int, world_size: int) -> None:
    with world():
        group, seen = dist.group.WORLD, []

        def agree(told: Any) -> None:
            if told.name.name == "ALLREDUCE":
                dist.broadcast(value := np.full(1, float(rank)), 1)
                seen.append(value[0])

        group.register_pre_hook(0, agree)
        assert_usable(rank, world_size)
        assert seen == [1.0]


@pytest.mark.ranks(2)
def test_what_is_no_hook_is_refused(rank: int, world_size: int) -> None:
    with world():
        group = dist.new_group()
        plain = group.core.engine
        for kind in ("pre", "post", "abort"):
            register = getattr(group, f"register_{kind}_hook")
            assert_refused(TypeError, "hook_id must be an integer", register, "a", print)
            assert_refused(TypeError, "hook must be callable", register, 1, None)
            assert_refused(TypeError, "hook_id", getattr(group, f"unregister_{kind}_hook"), None)
        assert group.core.engine is plain
        dist.barrier()
        group.register_pre_hook(1, print)
        dist.destroy_process_group(group)
        group.unregister_pre_hook(1)
        assert_refused(StateError, "destroyed", group.register_pre_hook, 1, print)
