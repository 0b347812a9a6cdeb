"""Worlds and groups of MindSpore's frontend: names, ranks, and what the environment answers before there is a world."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from mindspore_world import check, numbers, world

import shim.frontends.mindspore.communication as communication
import shim.frontends.mindspore.mint.distributed as dist
from shim.errors import ArgumentError, NotMemberError, RankError, StateError, UnsupportedError
from shim.frontends.mindspore import ops
from shim.frontends.mindspore.communication import GlobalComm, management

WORLD_NAMES = ("hccl_world_group", "nccl_world_group", "mccl_world_group")


@pytest.mark.ranks(3)
def test_the_world(rank: int, world_size: int) -> None:
    assert dist.is_available()
    assert not dist.is_initialized()
    with world():
        assert dist.is_initialized()
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, world_size, "hccl")
        assert (communication.get_rank(), communication.get_group_size()) == (rank, world_size)
        assert (communication.get_local_rank(), communication.get_local_rank_size()) == (rank, world_size)
        assert dist.get_process_group_ranks() == list(range(world_size))
        for name in WORLD_NAMES:
            assert (dist.get_rank(name), communication.get_group_size(name)) == (rank, world_size)
            tensor = numbers(rank, 3)
            dist.all_reduce(tensor, group=name)
            check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
    assert not dist.is_initialized()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("backend", [None, "hccl", "nccl", "mccl"])
def test_init_and_release(rank: int, world_size: int, backend: str | None) -> None:
    communication.init(backend)
    communication.init(backend)
    try:
        assert GlobalComm.INITED
        assert f"{backend or 'hccl'}_world_group" == GlobalComm.WORLD_COMM_GROUP
        assert communication.get_rank(GlobalComm.WORLD_COMM_GROUP) == rank
        assert management.get_group_size() == world_size
        assert dist.is_initialized()
        dist.init_process_group()  # a second time, through the other function
    finally:
        communication.release()
    assert not GlobalComm.INITED
    assert not dist.is_initialized()


@pytest.mark.ranks(2)
def test_the_environment_answers_before_init(rank: int, world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK_ID", raising=False)
    monkeypatch.delenv("RANK_SIZE", raising=False)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    assert (communication.get_rank(), communication.get_group_size()) == (0, 1)
    assert (communication.get_local_rank(), communication.get_local_rank_size()) == (0, 1)
    monkeypatch.setenv("RANK_ID", "3")
    monkeypatch.setenv("RANK_SIZE", "7")
    assert (dist.get_rank("any group"), dist.get_world_size()) == (3, 7)
    assert (communication.get_rank(), communication.get_group_size("any group")) == (3, 7)
    gather = ops.AllGather()
    assert (gather.rank, gather.rank_size) == (3, 7)
    with pytest.raises(StateError, match=r"mindspore\.ops\.AllGather.*not initialised"):
        gather(numbers(rank, 2))
    with world():  # made before, it works in the world there is
        check("numpy", gather(numbers(rank, 2)), np.concatenate([numbers(0, 2), numbers(1, 2)]))
    monkeypatch.setenv("RANK_ID", "first")
    with pytest.raises(StateError, match="RANK_ID must be a number"):
        communication.get_rank()


@pytest.mark.ranks(3)
def test_new_group(rank: int, world_size: int) -> None:
    with world():
        assert dist.new_group() == "hccl_world_group"
        name = dist.new_group([2, 0], group_desc="the ends")
        assert dist.new_group([0, 2]) == name
        assert name.startswith("hccl_2_")
        assert dist.new_group([0, 2], backend="mccl").startswith("mccl_2_")
        assert (dist.get_backend(name), dist.get_backend("mccl_2_x")) == ("hccl", "mccl")
        assert dist.get_rank(name) == {0: 0, 1: -1, 2: 1}[rank]
        assert dist.get_world_size(name) == (-1 if rank == 1 else 2)
        assert dist.get_process_group_ranks(name) == [0, 2]
        assert (dist.get_global_rank(name, 1), dist.get_group_rank(name, 2)) == (2, 1)
        assert (dist.get_rank("no such group"), dist.get_world_size("no such group")) == (-1, -1)
        tensor = numbers(rank, 4)
        if rank == 1:
            with pytest.raises(NotMemberError):
                dist.all_reduce(tensor, group=name)
            check("numpy", tensor, numbers(1, 4))
        else:
            dist.all_reduce(tensor, group=name)
            check("numpy", tensor, numbers(0, 4) + numbers(2, 4))
        dist.destroy_process_group(name)
        with pytest.raises(StateError, match="no group named"):
            dist.all_reduce(tensor, group=name)
        assert dist.new_group([0, 2]) == name


@pytest.mark.ranks(3)
def test_primitives_count_ranks_in_their_group(rank: int, world_size: int) -> None:
    with world():
        name = dist.new_group([1, 2])
        if rank == 0:
            assert ops.AllGather(name).rank == -1
            with pytest.raises(NotMemberError):
                ops.AllGather(name)(numbers(rank, 2))
        else:
            check("numpy", ops.AllGather(name)(numbers(rank, 2)), np.concatenate([numbers(1, 2), numbers(2, 2)]))
            check("numpy", ops.Broadcast(1, name)((numbers(rank, 2),))[0], numbers(2, 2))
            gathered = ops.CollectiveGather(0, name)(numbers(rank, 2))
            expected = np.concatenate([numbers(1, 2), numbers(2, 2)]) if rank == 1 else np.zeros(1, "float32")
            check("numpy", gathered, expected)


@pytest.mark.ranks(3)
def test_create_group_keeps_the_order(rank: int, world_size: int) -> None:
    communication.init()
    try:
        communication.create_group("turned", [2, 0])
        assert communication.get_rank("turned") == {0: 1, 1: -1, 2: 0}[rank]
        assert communication.get_group_size("turned") == 2
        assert communication.get_process_group_ranks("turned") == [2, 0]
        assert communication.get_world_rank_from_group_rank("turned", 0) == 2
        assert communication.get_group_rank_from_world_rank(0, "turned") == 1
        if rank != 1:
            check("numpy", ops.AllGather("turned")(numbers(rank, 2)), np.concatenate([numbers(2, 2), numbers(0, 2)]))
        with pytest.warns(UserWarning, match="exists already"):
            communication.create_group("turned", [2, 0])
        with pytest.raises(ValueError, match=r"exists already, with ranks \[2, 0\]"):
            communication.create_group("turned", [0, 2])
        communication.destroy_group("turned")
        for gone in (communication.destroy_group, communication.get_rank, communication.get_process_group_ranks):
            with pytest.raises(RuntimeError, match="no group named 'turned'"):
                gone("turned")
    finally:
        communication.release()


@pytest.mark.ranks(2)
def test_a_name_for_the_world(rank: int, world_size: int) -> None:
    with world(group_name="everyone", timeout=timedelta(seconds=20), world_size=world_size, rank=rank):
        assert GlobalComm.WORLD_COMM_GROUP == "everyone"
        assert dist.new_group() == "everyone"
        tensor = numbers(rank, 3)
        dist.all_reduce(tensor, group="everyone")
        check("numpy", tensor, numbers(0, 3) + numbers(1, 3))
        communication.init()
        assert (dist.new_group(), dist.get_world_size("everyone")) == ("everyone", world_size)
        with pytest.warns(UserWarning, match="the world is there already, and named 'everyone'"):
            dist.init_process_group(group_name="nobody")
    assert GlobalComm.WORLD_COMM_GROUP == "hccl_world_group"
    with world():
        assert dist.get_rank("everyone") == -1


@pytest.mark.ranks(2)
@pytest.mark.parametrize("ranks", [None, [0, 1]])
def test_a_group_that_is_there_keeps_what_it_has(rank: int, world_size: int, ranks: list[int] | None) -> None:
    with world(timeout=timedelta(seconds=20)):
        name = dist.new_group(ranks)
        for arguments in ({"timeout": timedelta(seconds=1)}, {"group_desc": "other"}):
            with pytest.warns(UserWarning, match="exists already, with its own timeout and description"):
                assert dist.new_group(ranks, **arguments) == name
        assert dist.new_group(ranks, timeout=timedelta(seconds=20)) == name


@pytest.mark.ranks(2)
def test_the_world_stays_for_another_frontend(rank: int, world_size: int) -> None:
    import shim.frontends.torch.distributed as other

    other.init_process_group()
    try:
        with pytest.raises(StateError):
            dist.barrier()
        with world():
            dist.barrier()
        with pytest.raises(StateError):
            dist.barrier()
        tensor = numbers(rank, 3)
        other.all_reduce(tensor)
        check("numpy", tensor, numbers(0, 3) + numbers(1, 3))
    finally:
        other.destroy_process_group()


REFUSED: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "another backend": ({"backend": "nccl"}, ValueError),
    "no backend": ({"backend": None}, ValueError),
    "store": ({"store": object()}, TypeError),
    "store and URL": ({"store": object(), "init_method": "tcp://127.0.0.1:1"}, ValueError),
    "options": ({"pg_options": object()}, UnsupportedError),
    "URL of bytes": ({"init_method": b"env://"}, TypeError),
    "unknown URL": ({"init_method": "udp://127.0.0.1:1"}, ValueError),
    "seconds": ({"timeout": 3}, TypeError),
    "no time": ({"timeout": timedelta(0)}, ValueError),
    "size of text": ({"world_size": "2"}, TypeError),
    "size 0": ({"world_size": 0}, ValueError),
    "rank of text": ({"rank": "0"}, TypeError),
    "rank -2": ({"rank": -2}, ValueError),
    "name of bytes": ({"group_name": b"everyone"}, TypeError),
}


@pytest.mark.parametrize("what", REFUSED)
def test_init_refuses(what: str) -> None:
    arguments, kind = REFUSED[what]
    with pytest.raises(kind, match=r"^mindspore\.mint\.distributed\.init_process_group: "):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


@pytest.mark.ranks(2)
def test_reserved_devices_are_ignored(rank: int) -> None:
    with pytest.warns(UserWarning, match=r"init_process_group: device_id is reserved"):
        dist.init_process_group(device_id=rank)
    try:
        with pytest.warns(UserWarning, match=r"barrier: device_ids is reserved"):
            dist.barrier(device_ids=[rank])
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_a_barrier_waits_for_the_device(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []
    with world():
        monkeypatch.setattr("mindspore.runtime.synchronize", lambda: waits.append("all"))
        dist.barrier()
        assert not waits
        monkeypatch.setattr("mindspore.get_context", lambda _name: "GPU")
        dist.barrier()
        assert waits == ["all"]


@pytest.mark.ranks(2)
def test_another_size_than_the_world_has(rank: int, world_size: int) -> None:
    with world(), pytest.raises(ValueError, match="already initialised with rank"):
        dist.init_process_group(world_size=5)


@pytest.mark.parametrize(("backend", "kind"), [(1, TypeError), ("gloo", RuntimeError), ("HCCL", RuntimeError)])
def test_communication_knows_three_backends(backend: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^mindspore\.communication\.init: backend_name"):
        communication.init(backend)


@pytest.mark.ranks(2)
def test_options_for_hccl_alone_change_nothing(rank: int, world_size: int) -> None:
    kind = type("GroupOptions", (), {"__module__": "mindspore._c_expression", "use_async": False})
    with world():
        with pytest.warns(UserWarning, match="create_group: options is for HCCL, and changes nothing here"):
            communication.create_group("pair", [0, 1], kind())
        assert communication.get_group_size("pair") == 2
        with pytest.warns(UserWarning, match="new_group: pg_options is for HCCL"):
            assert dist.get_world_size(dist.new_group([0, 1], pg_options=kind())) == 2
        options = kind()
        options.use_async = True
        with pytest.raises(UnsupportedError, match="options"):
            communication.create_group("others", [0, 1], options)


@pytest.mark.ranks(2)
def test_a_group_of_other_ranks_is_not_taken_for_one_by_its_name(rank: int, world_size: int) -> None:
    """The name of a group without one has a digest of its ranks."""
    with world():
        name = dist.new_group([0, 1])
        dist.destroy_process_group(name)
        communication.create_group(name, [1, 0])
        with pytest.raises(ArgumentError, match=rf"ranks are to be group '{name}', which has \[1, 0\]"):
            dist.new_group([0, 1])


@pytest.mark.ranks(2)
def test_groups_that_cannot_be(rank: int, world_size: int) -> None:
    with world():
        with pytest.raises(TypeError, match="ranks must be different"):
            dist.new_group([0, 0])
        with pytest.raises(RankError):
            dist.new_group([0, 2])
        for ranks in ((0, 1), 1, "01"):
            with pytest.raises(TypeError, match="list of int"):
                dist.new_group(ranks)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(TypeError, match="list of int"):
            dist.new_group([0, "1"])  # type: ignore[list-item]  # the mistake
        with pytest.raises(ArgumentError, match="at least one"):
            dist.new_group([])
        with pytest.raises(TypeError, match="backend"):
            dist.new_group([0, 1], backend="gloo")
        with pytest.raises(UnsupportedError, match="pg_options"):
            dist.new_group([0, 1], pg_options=object())
        with pytest.raises(TypeError, match="timeout"):
            dist.new_group([0, 1], 30)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(TypeError, match="use_local_synchronization"):
            dist.new_group([0, 1], use_local_synchronization=1)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(UnsupportedError, match="options"):
            communication.create_group("pair", [0, 1], object())
        with pytest.raises(ValueError, match="must not be the world"):
            communication.destroy_group("mccl_world_group")
        for function in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.destroy_process_group):
            with pytest.raises(TypeError, match="group must be a str, got int"):
                function(0)  # type: ignore[operator]  # the mistake
        for function in (communication.get_rank, communication.get_group_size, communication.destroy_group):
            with pytest.raises(TypeError, match="group must be a str, got NoneType"):
                function(None)  # type: ignore[operator]  # the mistake
        with pytest.raises(ValueError, match="group rank must be"):
            communication.get_world_rank_from_group_rank("hccl_world_group", 2)
        with pytest.raises(TypeError, match="world_rank_id must be an int"):
            communication.get_group_rank_from_world_rank("0", "hccl_world_group")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    "call",
    [
        dist.barrier,
        dist.destroy_process_group,
        dist.new_group,
        dist.get_process_group_ranks,
        lambda: dist.all_reduce(np.ones(2)),
        lambda: communication.create_group("pair", [0]),
        lambda: communication.destroy_group("pair"),
    ],
)
def test_nothing_works_before_init(call: Any) -> None:
    with pytest.raises(StateError, match="not initialised"):
        call()


@pytest.mark.ranks(1)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("init_process_group", ("gloo",)),
        ("new_group", ("0",)),
        ("destroy_process_group", (3,)),
        *((name, (3,)) for name in ("get_rank", "get_world_size", "get_backend", "get_process_group_ranks")),
        *((name, (3, 0)) for name in ("get_global_rank", "get_group_rank")),
    ],
)
@pytest.mark.parametrize("module", ["mint.distributed", "ops.communication"])
def test_errors_name_the_function_which_both_modules_share(
    rank: int, world_size: int, module: str, name: str, arguments: tuple[Any, ...]
) -> None:
    function = getattr(importlib.import_module(f"shim.frontends.mindspore.{module}"), name)
    with world(), pytest.raises((TypeError, ValueError), match=f"^mindspore.mint.distributed.{name}: "):
        function(*arguments)
