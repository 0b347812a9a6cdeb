"""Tensors on devices: which engine gets them, what is said where there is none, and what ranks that disagree are told."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from described_tensors import OnDevice

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.base import Request, check_call
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import copy_of, new_like, staging
from shim.core.work import Batch
from shim.errors import ArgumentError, DeviceTensorError, MismatchError, StateError, TensorError

ME = Caller("test", input="tensor", output="result")
SUM = ReduceOp.SUM
METAL, EXTENSION = 8, 12  # by DLPack's numbers


@contextmanager
def world(backend: str = "") -> Iterator[ProcessGroup]:
    group = groups.enter_world(ME, "test", backend=backend)
    try:
        yield group
    finally:
        groups.leave_world("test")


def _back(tensor: OnDevice, copy: Any) -> None:
    tensor.memory[...] = copy


@contextmanager
def staged_world(backend: str = "") -> Iterator[ProcessGroup]:
    """Calls go through host memory, as *backend* or SHIM_STAGE asks; a framework called as the module of these tensors makes the copies."""
    stage = staging.Stage(lambda tensor: np.full_like(tensor.memory, 99), lambda tensor: tensor.memory.copy(), _back)
    with pytest.MonkeyPatch.context() as patch, world(backend) as group:
        if not backend:
            patch.setenv("SHIM_STAGE", "host")
        patch.setitem(staging._STAGES, "described_tensors", stage)
        yield group


def ones(*shape: int, by: float = 1.0, number: int = 0) -> OnDevice:
    return OnDevice(np.full(shape, by), number)


@pytest.mark.ranks(2)
def test_what_nobody_serves_is_refused_on_all_ranks(rank: int) -> None:
    with world() as group:
        there = OnDevice(np.ones(2), 3, METAL)
        if rank == 0:
            with pytest.raises(
                DeviceTensorError, match=r"test: tensor must be in host memory, got a tensor on metal:3"
            ) as caught:
                calls.all_reduce(ME, group, there, there, SUM, now=True)
            assert "The engine for metal cannot be had: no engine here serves it." in str(caught.value)
            assert "SHIM_STAGE=host" in str(caught.value)
            assert caught.value.device == ("metal", 3)
        else:
            with pytest.raises(MismatchError, match=r"rank 0: refused: test: tensor must be in host memory"):
                calls.all_reduce(ME, group, array("f", [1.0]), array("f", [1.0]), SUM, now=True)
        with pytest.raises(DeviceTensorError, match="metal:3"):
            calls.send(ME, group, there, 1 - rank)
        with pytest.raises(DeviceTensorError, match="metal:3"):
            calls.received(ME, group, there, 1 - rank, 0)
        calls.barrier(ME, group).wait()


@pytest.mark.ranks(1)
def test_an_accelerator_that_torch_does_not_know() -> None:
    with world() as group:
        there = OnDevice(np.ones(2), 0, EXTENSION)
        with pytest.raises(
            DeviceTensorError, match=r"extension:0(.|\n)*cannot be had: torch (has no backend for|could have)"
        ):
            calls.all_reduce(ME, group, there, there, SUM, now=True)


@pytest.mark.ranks(2)
def test_an_item_of_a_list_is_named(rank: int) -> None:
    with world() as group:
        outputs = [array("f", [0.0]), OnDevice(np.ones(1), 0, METAL)]
        with pytest.raises((DeviceTensorError, MismatchError), match=r"result\[1\] must be in host memory"):
            calls.all_gather(ME, group, outputs, array("f", [1.0]), now=True)


@pytest.mark.ranks(1)
def test_another_way_than_the_host_is_no_way(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with world() as group:
        monkeypatch.setenv("SHIM_STAGE", "disk")
        with pytest.raises(ArgumentError, match="SHIM_STAGE must be host, got 'disk'"):
            calls.broadcast(ME, group, ones(2), 0)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("now", [True, False])
def test_all_collectives_go_through_host_memory(rank: int, now: bool) -> None:
    with staged_world() as group:
        mine, theirs = rank + 1.0, 2.0 - rank
        tensor = ones(2, by=mine)
        calls.broadcast(ME, group, tensor, 1, now).wait()
        assert tensor.memory.tolist() == [2.0, 2.0]
        tensor = ones(2, by=mine)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=now).wait()
        assert tensor.memory.tolist() == [3.0, 3.0]
        reduced = ones(2, by=7.0)
        calls.reduce(ME, group, reduced, ones(2, by=mine), SUM, 1, now=now).wait()
        assert reduced.memory.tolist() == [[7.0, 7.0], [3.0, 3.0]][rank]
        parts = [ones(2), ones(2)]
        calls.all_gather(ME, group, parts, ones(2, by=mine), now=now).wait()
        assert [part.memory.tolist() for part in parts] == [[1.0, 1.0], [2.0, 2.0]]
        whole = ones(4, by=7.0)
        calls.gather(ME, group, whole if rank == 0 else None, ones(2, by=mine), 0, now=now).wait()
        assert whole.memory.tolist() == [[1.0, 1.0, 2.0, 2.0], [7.0] * 4][rank]
        part = ones(2, by=7.0)
        calls.scatter(ME, group, part, OnDevice([1, 1, 2, 2]) if rank == 1 else None, 1, now=now).wait()
        assert part.memory.tolist() == [mine, mine]
        part = ones(2)
        calls.reduce_scatter(ME, group, part, OnDevice([1, 1, 2, 2]), SUM, now=now).wait()
        assert part.memory.tolist() == [2 * mine, 2 * mine]
        part = ones(2)
        calls.all_to_all(ME, group, part, ones(2, by=mine), now=now).wait()
        assert part.memory.tolist() == [1.0, 2.0]
        received = ones(2)
        if rank == 0:
            calls.send(ME, group, ones(2, by=mine), 1, now=now).wait()
            calls.receive(ME, group, received, 1, now=now).wait()
        else:
            calls.receive(ME, group, received, 0, now=now).wait()
            calls.send(ME, group, ones(2, by=mine), 0, now=now).wait()
        assert received.memory.tolist() == [theirs, theirs]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("backend", ["gloo", "cpu:nccl,CUDA:gloo", "rocm:nccl,cuda:gloo"])
def test_the_backend_gloo_carries_tensors_on_devices_through_host_memory(rank: int, backend: str) -> None:
    with staged_world(backend) as group:
        tensor = ones(2, by=1.0 + rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        assert tensor.memory.tolist() == [3.0, 3.0]
        assert group.engines_of_devices() == {"cuda": f"engine through host memory, as backend={backend!r} says"}


@pytest.mark.ranks(2)
def test_a_backend_that_names_no_library_for_a_device_serves_none(rank: int) -> None:
    with world("cpu:gloo,metal:mpi") as group:
        tensor = ones(2)
        with pytest.raises(
            DeviceTensorError,
            match=r"The engine for cuda cannot be had: the group's backend 'cpu:gloo,metal:mpi' names none\.",
        ):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)


@pytest.mark.ranks(2)
def test_what_was_started_is_on_the_device_when_it_has_ended(rank: int) -> None:
    with staged_world() as group:
        tensor, strided = ones(2), OnDevice(np.zeros((2, 2), "float32").T)
        work = calls.all_reduce(ME, group, tensor, tensor, SUM)
        work.start()
        while not work.is_completed():
            pass
        assert tensor.memory.tolist() == [2.0, 2.0]
        calls.all_gather(ME, group, strided, ones(2), whole=True).wait()
        assert strided.memory.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.ranks(2)
def test_an_output_stays_as_it_was_where_the_ranks_disagree(rank: int) -> None:
    with staged_world() as group:
        tensor = ones(2 + rank)
        with pytest.raises(MismatchError, match="the shape"):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        assert set(tensor.memory) == {1.0}


@pytest.mark.ranks(2)
def test_calls_in_both_kinds_of_memory_may_begin_together(rank: int) -> None:
    with staged_world() as group:
        here, there = np.full(2, 1.0 + rank), ones(2, by=1.0 + rank)
        Batch([calls.all_reduce(ME, group, tensor, tensor, SUM) for tensor in (here, there, here)]).wait()
        assert here.tolist() == [3.0, 3.0]
        assert there.memory.tolist() == [3.0, 3.0]


def move_nothing(request: Request) -> None:
    with pytest.raises(StateError, match="the host cannot reach the memory of a call on cuda:0"):
        _ = request.inputs
    (place,) = request.input_places
    assert (request.device, place[1]) == ("cuda:0", 8)


@pytest.mark.ranks(2)
def test_ranks_must_agree_on_where_their_tensors_are(rank: int) -> None:
    with world() as group:
        tensor: Any = ones(2) if rank == 0 else np.ones(2, "float32")
        request = check_call("all_reduce", rank, 2, outputs=tensor, inputs=tensor, op=SUM, devices=True)
        with pytest.raises(MismatchError, match=r"disagree on where the tensors are") as caught:
            group.engine.arrive(request, move_nothing, True)
        assert "rank 0: all_reduce(float32 [2] on cuda, SUM)" in str(caught.value)
        assert "They differ: cuda on rank 0, cpu on rank 1." in str(caught.value)
        tensor = ones(2)
        request = check_call("all_reduce", rank, 2, outputs=tensor, inputs=tensor, op=SUM, devices=True)
        group.engine.arrive(request, move_nothing, True)
        assert tensor.memory.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("output", "input", "told"),
    [
        (ones(2), np.ones(2, "float32"), r"{output} and {input} must be on the same device, got cuda:0 and cpu"),
        (ones(2), ones(2, number=1), r"{output} and {input} must be on the same device, got cuda:0 and cuda:1"),
        (ones(2), OnDevice(np.ones(4, "float32")[::2]), r"{input} must be contiguous, as it is on cuda:0"),
    ],
    ids=["host and device", "two devices", "strided"],
)
def test_what_a_device_call_must_be(output: Any, input: Any, told: str) -> None:
    with pytest.raises((ArgumentError, TensorError)) as caught:
        check_call("all_reduce", 0, 1, outputs=output, inputs=input, op=SUM, devices=True)
    assert told in str(caught.value)


def test_tensors_that_overlap_in_part_are_refused_on_a_device() -> None:
    memory = np.ones(3, "float32")
    with pytest.raises(TensorError, match=r"must not overlap in part, as they are on cuda:0"):
        check_call("all_reduce", 0, 1, outputs=OnDevice(memory[:2]), inputs=OnDevice(memory[1:]), op=SUM, devices=True)


def test_new_arrays_like_those_of_cupy_are_on_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[int] = []

    @contextmanager
    def on_device() -> Iterator[None]:
        current.append(3)
        yield
        current.pop()

    def made(array: Any) -> Any:
        assert current == [3]
        return array.view(kind)

    members = {"__module__": "cupy", "device": property(lambda _: on_device()), "copy": lambda one: made(np.array(one))}
    kind: Any = type("ndarray", (np.ndarray,), members)
    cupy = SimpleNamespace(empty=lambda shape, dtype: made(np.empty(shape, dtype)), ndarray=kind)
    monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[misc]  # what is asked of it
    given = np.arange(3.0).view(kind)
    new, copied = new_like(given, (2, 2)), copy_of(given)
    assert (type(new), new.shape, new.dtype) == (kind, (2, 2), given.dtype)
    assert type(copied) is kind
    assert np.asarray(copied).tolist() == [0.0, 1.0, 2.0]
