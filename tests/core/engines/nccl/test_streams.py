"""In what order operations come on the streams of fake devices, of which some wait for each other and some do not, and how long tensors are kept."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_device import LEGACY, PER_THREAD, FakeTensor, Stream, check, current, load, on_stream, world
from gates import Gate

import shim.frontends.torch.distributed as dist
from shim.core import calls
from shim.core.callers import Caller
from shim.core.engines.devices import watched_links
from shim.core.engines.nccl import device_links
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import CollectiveTimeoutError, EngineError

ME = Caller("test", input="tensor", output="result")
SUM = ReduceOp.SUM


@contextmanager
def connected(rank: int) -> Iterator[ProcessGroup]:
    """Give a world whose ranks have made a call of each kind on their devices."""
    with world() as group:
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        calls.send(ME, group, tensor, 1, now=True) if rank == 0 else calls.receive(ME, group, tensor, 0, now=True)
        check(tensor, np.full(3, 3.0))
        yield group


def fill(tensor: FakeTensor, value: int, stream: Stream) -> None:
    with current(tensor.number) as cuda:
        assert cuda.cuMemsetD8Async(tensor._address, value, ctypes.c_size_t(tensor._bytes), stream.handle) == 0


def is_idle_soon(stream: Stream) -> bool:
    until = time.monotonic() + 10.0
    while not stream.is_idle() and time.monotonic() < until:
        time.sleep(0.001)
    return stream.is_idle()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("default", [0, LEGACY, PER_THREAD], ids=["own", "legacy", "per thread"])
@pytest.mark.parametrize("now", [True, False], ids=["now", "started"])
def test_a_call_comes_after_what_is_on_the_callers_stream(rank: int, default: int, now: bool) -> None:
    with connected(rank) as group:
        stream, gate, tensor = Stream(rank, default), Gate(), FakeTensor(np.zeros(3, "uint8"), rank)
        gate.close(stream)
        fill(tensor, 1 + rank, stream)
        with on_stream(stream):
            work = calls.all_reduce(ME, group, tensor, tensor, SUM, now=now)
            if not now:
                work.wait()
        assert not stream.is_idle()
        gate.open()
        stream.synchronize()
        check(tensor, np.full(3, 3, "uint8"))


@pytest.mark.ranks(2)
def test_messages_come_after_what_is_on_the_callers_stream(rank: int) -> None:
    with connected(rank) as group:
        stream, gate, tensor = Stream(rank), Gate(), FakeTensor(np.zeros(3, "uint8"), rank)
        gate.close(stream)
        fill(tensor, 1 + rank, stream)  # on rank 1 before what is received
        with on_stream(stream):
            work = calls.send(ME, group, tensor, 1) if rank == 0 else calls.receive(ME, group, tensor, 0)
            work.wait()
        gate.open()
        stream.synchronize()
        check(tensor, np.full(3, 1, "uint8"))


@pytest.mark.ranks(2)
def test_started_operations_do_not_wait_for_the_default_stream(rank: int) -> None:
    """Nor that for them: the program may compute there meanwhile."""
    with connected(rank) as group:
        default, stream, gate = Stream(rank, LEGACY), Stream(rank), Gate()
        tensor, received = FakeTensor(np.full(3, 1.0 + rank), rank), FakeTensor(np.zeros(3), rank)
        gate.close(default)
        with on_stream(stream):
            calls.all_reduce(ME, group, tensor, tensor, SUM).wait()
            work = calls.send(ME, group, tensor, 1) if rank == 0 else calls.receive(ME, group, received, 0)
            work.wait()
        is_idle = is_idle_soon(stream)
        gate.open()
        assert is_idle
        check(tensor if rank == 0 else received, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_what_the_program_lets_go_is_kept_until_the_device_has_read_it(rank: int) -> None:
    """Its memory would be used again at once: the stream on which it was made is free."""
    with connected(rank) as group:
        stream, gate = Stream(rank), Gate()
        given, gathered = FakeTensor(np.full(3, 1.0 + rank), rank), FakeTensor(np.zeros(6), rank)
        message, received = FakeTensor(np.full(3, 5.0), rank), FakeTensor(np.zeros(3), rank)
        gate.close(stream)
        with on_stream(stream):
            calls.all_gather(ME, group, gathered, given, whole=True).wait()
            work = calls.send(ME, group, message, 1) if rank == 0 else calls.receive(ME, group, received, 0)
            work.wait()
        del given, message, work
        time.sleep(0.3)  # in which the watch looks whether they are still used
        gate.open()
        stream.synchronize()
        check(gathered, np.repeat([1.0, 2.0], 3))
        check(received, np.full(3, 5.0 * rank))


@pytest.mark.ranks(2)
def test_a_wait_with_a_timeout_waits_for_the_device(rank: int) -> None:
    """As torch's does; without one it orders the current stream."""
    dist.init_process_group("nccl")
    try:
        stream, gate, tensor = Stream(rank), Gate(), FakeTensor(np.full(3, 1.0 + rank), rank)
        dist.all_reduce(tensor)
        gate.close(stream)
        with on_stream(stream):
            work = dist.all_reduce(tensor, async_op=True)
            work.wait()
            with pytest.raises(CollectiveTimeoutError, match=r"has not ended on the device within 0\.1 s"):
                work.wait(timedelta(seconds=0.1))
            gate.open()
            work.wait(timedelta(seconds=20))
        assert work.is_completed()
        check(tensor, np.full(3, 6.0))
    finally:
        dist.destroy_process_group()


@pytest.mark.ranks(2)
def test_the_watch_does_not_end_a_graph_that_is_captured(rank: int) -> None:
    """It asks about what is under way, from a thread that has said that it may."""
    with connected(rank) as group:
        busy, captured, gate = Stream(rank), Stream(rank), Gate()
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        gate.close(busy)
        with on_stream(busy):
            calls.all_reduce(ME, group, tensor, tensor, SUM).wait()
        with captured.captured():
            time.sleep(0.3)
        gate.open()
        busy.synchronize()
        check(tensor, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_a_started_operation_in_a_graph(rank: int) -> None:
    """While a graph is captured, nothing is done, and no event says when: the group goes on afterwards."""
    with connected(rank) as group:
        tensor, stream = FakeTensor(np.full(3, 1.0 + rank), rank), Stream(rank)
        with on_stream(stream), stream.captured():
            work = calls.all_reduce(ME, group, tensor, tensor, SUM)
            work.wait()
            assert work.is_completed()
        time.sleep(0.3)  # in which the watch looks at what is under way
        check(tensor, np.full(3, 1.0 + rank))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_a_first_launch_does_not_end_a_graph_that_is_captured(rank: int) -> None:
    """It connects the ranks, on a thread of the group's, while this one captures what has nothing to do with it."""
    with world() as group:
        stream, captured = Stream(rank), Stream(rank)
        tensor, received = FakeTensor(np.full(3, 1.0 + rank), rank), FakeTensor(np.zeros(3), rank)
        with on_stream(stream), captured.captured():
            works = [
                calls.all_reduce(ME, group, tensor, tensor, SUM),
                calls.send(ME, group, tensor, 1) if rank == 0 else calls.receive(ME, group, received, 0),
            ]
            for work in works:
                work.start()
                work.wait()
        check(tensor, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_a_graph_that_holds_calls_of_the_group_is_told_when_it_is_closed(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL waits for it without an end."""
    monkeypatch.setattr(device_links, "_FOR_AN_END", 0.3)
    graph = ctypes.c_void_p()

    def capture_and_close() -> None:
        nonlocal graph
        with connected(rank) as group:
            tensor, stream = FakeTensor(np.ones(3), rank), Stream(rank)
            with on_stream(stream), stream.captured(is_kept=True) as graph:
                calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)

    with pytest.raises(EngineError, match="delete it before the group is closed"):
        capture_and_close()
    assert load().cuGraphDestroy(graph) == 0
    with connected(rank) as group:  # the world was left all the same
        assert group.is_alive


@pytest.mark.ranks(2)
def test_what_was_cut_off_stays_so_when_its_end_is_reached(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an abort has it be: a later look at a loss must not take it for its success."""
    monkeypatch.setattr(watched_links, "_BETWEEN_LOOKS", 60.0)
    with connected(rank) as group:
        links, lost = group._of_devices["cuda"].links, EngineError("a rank is lost")
        stream, gate, tensor = Stream(rank), Gate(), FakeTensor(np.ones(3), rank)
        gate.close(stream)
        with on_stream(stream):
            work = calls.all_reduce(ME, group, tensor, tensor, SUM)
            work.wait()
            links.end(lost)
            gate.open()
            stream.synchronize()
            links.end(lost)
            with pytest.raises(EngineError, match="a rank is lost"):
                work.wait()
        assert isinstance(work.exception(), EngineError)


@pytest.mark.ranks(2)
def test_arrays_of_cupy_are_on_its_current_stream(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy has no functions in C to ask, and tells the stream of the device that is current, which need not be the array's."""

    def get_current_stream() -> SimpleNamespace:
        context = ctypes.c_void_p()
        load().cuCtxGetCurrent(ctypes.byref(context))
        return SimpleNamespace(ptr=stream.handle.value if context.value == 1 + rank else 0)

    with connected(rank) as group:
        stream, gate, tensor = Stream(rank), Gate(), FakeTensor(np.full(6, 1.0 + rank), rank)
        where = SimpleNamespace(ptr=tensor._address.value), SimpleNamespace(id=rank)
        members = {"data": where[0], "device": where[1], "dtype": np.dtype(float), "itemsize": 8, "strides": (24, 8)}
        kind: Any = type("ndarray", (), {"__module__": "cupy._core.core", "shape": (2, 3), **members})
        cupy, array = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=get_current_stream), ndarray=kind), kind()
        monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[misc]  # what is asked of it
        gate.close(stream)
        if rank == 0:
            fill(tensor, 0, stream)
        calls.all_reduce(ME, group, array, array, SUM, now=True)
        gate.open()
        stream.synchronize()
        check(tensor, np.full(6, 2.0))


@pytest.mark.ranks(2)
def test_a_communicator_is_not_aborted_while_it_launches(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake ends the process of whoever does, as it would one in which two threads use a communicator."""
    with connected(rank) as group:
        links, tensor = group._of_devices["cuda"].links, FakeTensor(np.ones(3), rank)
        monkeypatch.setenv("FAKE_NCCL_LAUNCHES_SLOWLY", "1")
        begun = time.monotonic()
        calls.all_reduce(ME, group, tensor, tensor, SUM).start()
        time.sleep(0.1)
        links.end(EngineError("a rank is lost"))
        assert time.monotonic() - begun > 0.2
