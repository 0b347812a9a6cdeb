"""Objects of Python through MindSpore's frontend, on every rank."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from mindspore_world import world
from wrong_calls import assert_refused

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops.communication as communication
from shim.errors import ArgumentError, MismatchError, ShimError

MODULES: dict[str, Any] = {"mint": mint, "ops": communication}


def thing(rank: int, place: int = 0) -> Any:
    """Return an object that differs by rank and place, and in the length of its pickle."""
    return {"rank": rank, "place": place, "text": "x" * (10 * rank + place), "set": {rank, place}}


@pytest.fixture(params=MODULES)
def dist(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.ranks(1, 3)
def test_objects_of_every_rank(rank: int, world_size: int) -> None:
    for module in MODULES.values():
        with world():
            last = world_size - 1
            gathered: list[Any] = [None] * world_size
            assert module.all_gather_object(gathered, thing(rank)) is None
            assert gathered == [thing(other) for other in range(world_size)]
            gathered = ["kept"] * world_size
            assert module.gather_object(thing(rank, 1), gathered if rank == last else None, last) is None
            assert gathered == (
                [thing(other, 1) for other in range(world_size)] if rank == last else ["kept"] * world_size
            )
            objects = [thing(rank, place) for place in range(3)]
            assert module.broadcast_object_list(objects, last) is None
            assert objects == [thing(last, place) for place in range(3)]
            output: list[Any] = ["replaced", "kept"]
            given = [thing(rank, to) for to in range(world_size)] if rank == last else None
            assert module.scatter_object_list(output, given, last) is None
            assert output == [thing(last, rank), "kept"]


@pytest.mark.ranks(2)
def test_the_roots_own_objects_stay_the_same(rank: int, world_size: int) -> None:
    with world():
        objects = [thing(rank), thing(rank, 1)]
        first = objects[0]
        mint.broadcast_object_list(objects)
        assert (objects[0] is first) == (rank == 0)


@pytest.mark.ranks(3)
def test_in_a_subgroup(rank: int, world_size: int, dist: str) -> None:
    module = MODULES[dist]
    with world():
        group = module.new_group([0, 2])
        if rank != 1:
            gathered = [None, None]
            module.all_gather_object(gathered, thing(rank), group)
            assert gathered == [thing(0), thing(2)]
            objects = [thing(rank)]
            module.broadcast_object_list(objects, 2, group)
            assert objects == [thing(2)]
            output: list[Any] = [None]
            module.scatter_object_list(output, [thing(9), thing(rank, 8)], 2, group)
            assert output == [thing(9) if rank == 0 else thing(2, 8)]
            gathered = [None, None]
            module.gather_object(thing(rank), gathered, 2, group)
            assert gathered == ([thing(0), thing(2)] if rank == 2 else [None, None])


@pytest.mark.ranks(3)
def test_sent_objects(rank: int, world_size: int, dist: str) -> None:
    module, last = MODULES[dist], world_size - 1
    with world():
        if rank == 0:
            assert module.send_object_list([thing(0), None, np.arange(3)], last) is None
        elif rank == last:
            received: list[Any] = [1, 2, 3]
            assert module.recv_object_list(received) == 0
            assert received[:2] == [thing(0), None]
            assert received[2].tolist() == [0, 1, 2]


@pytest.mark.ranks(2)
def test_wrong_arguments_on_every_rank(rank: int, world_size: int, dist: str) -> None:
    module: Any = MODULES[dist]
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (module.all_gather_object, ([None], 1), "object_list must be a list with a place for each of 2 ranks, got 1"),
        (module.all_gather_object, ((None, None), 1), "object_list must be a list with a place"),
        (module.all_gather_object, ([None, None], 1, 0), "group must be a str"),
        (module.all_gather_object, ([None, None], threading.Lock()), "obj must be picklable"),
        (module.gather_object, (1, None, "0"), "dst must be an int"),
        (module.gather_object, (threading.Lock(), [None, None]), "obj must be picklable"),
        (module.broadcast_object_list, ([],), "object_list must be a list that is not empty"),
        (module.broadcast_object_list, ((1, 2),), "object_list must be a list that is not empty"),
        (module.broadcast_object_list, ([1], 0.0), "src must be an int"),
        (module.scatter_object_list, ([], [1, 2]), "scatter_object_output_list must be a list that is not empty"),
        (module.scatter_object_list, ([1], [1, 2], None), "src must be an int"),
        (module.send_object_list, ((1,), 1 - rank), "object_list must be a list"),
        (module.send_object_list, ([1], "1"), "dst must be an int"),
        (module.send_object_list, ([threading.Lock()], 1 - rank), "object_list must be picklable"),
        (module.recv_object_list, (None, 1 - rank), "object_list must be a list"),
        (module.recv_object_list, ([1], "1"), "src must be an int"),
        (module.recv_object_list, ([1], 1 - rank, 7), "group must be a str"),
    ]
    with world():
        for function, arguments, words in cases:
            assert_refused(TypeError, words, function, *arguments)
        for function in (module.send_object_list, module.recv_object_list):
            with pytest.raises(ValueError, match=r"(dst|src) must be another rank"):
                function([1], rank)
            with pytest.raises(ValueError, match="must not be empty"):
                function([], 1 - rank)
        with pytest.warns(UserWarning, match=r"broadcast_object_list: device is reserved"):
            module.broadcast_object_list([1], device="CPU")
        with pytest.raises(ValueError, match="dst must be one of the group's ranks"):
            module.gather_object(1, [1, 2], 2)
        assert_usable(module, rank)


@pytest.mark.ranks(2)
def test_wrong_arguments_on_the_root(rank: int, world_size: int, dist: str) -> None:
    """The others, who are waiting for it, are told."""
    module = MODULES[dist]
    with world():
        with pytest.raises(ArgumentError if rank == 0 else MismatchError):
            module.scatter_object_list([None], [1])
        with pytest.raises(ArgumentError if rank == 0 else MismatchError):
            module.gather_object(1, [1])
        with pytest.raises(ArgumentError if rank == 1 else MismatchError):
            module.all_gather_object([None] * (2 - rank), 1)
        with pytest.raises(MismatchError):
            module.broadcast_object_list([1] * (rank + 1))
        assert_usable(module, rank)


def assert_usable(module: Any, rank: int) -> None:
    gathered = [None, None]
    module.all_gather_object(gathered, rank)
    assert gathered == [0, 1]


@pytest.mark.ranks(2)
def test_a_receiver_is_told_that_its_sender_refused(rank: int) -> None:
    with world():
        if rank == 0:
            with pytest.raises(ShimError, match="object_list must"):
                mint.send_object_list([threading.Lock()], 1)
        else:
            with pytest.raises(MismatchError, match=r"rank 0 has not sent its objects, which cannot be pickled"):
                mint.recv_object_list([None], 0)
        mint.barrier()


@pytest.mark.ranks(2)
def test_a_list_that_both_refuse_is_no_part_of_the_next(rank: int) -> None:
    with world():
        for turn, wrong in enumerate(([], 1)):
            call = mint.recv_object_list if rank else mint.send_object_list
            with pytest.raises(ShimError, match="object_list must"):
                call(wrong, 1 - rank)
            items = [None] if rank else [f"right {turn}"]
            call(items, 1 - rank)
            assert items == [f"right {turn}"]
        mint.barrier()
