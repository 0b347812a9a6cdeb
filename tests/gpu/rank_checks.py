"""What a rank does to check one thing with tensors of a kind on the first GPU: functions for rank processes to call."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import drawn_calls
import numpy as np
from device_kinds import LONG, DeviceKind, kind_named

import shim
import shim.frontends.torch.distributed as dist
from shim.errors import PeerLostError, UnsupportedError

BY_NCCL = "nccl, NCCL "
ON_ONE_DEVICE = "nccl, whose ranks share a device"
_COUNT = 1 << 16  # elements


@contextmanager
def _world(device: Any = None) -> Iterator[None]:
    dist.init_process_group("nccl", device_id=device)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _floats(kind: DeviceKind, value: float) -> Any:
    return kind.make(np.full(_COUNT, value, "float32"))


def _assert_all(kind: DeviceKind, tensor: Any, value: float) -> None:
    np.testing.assert_array_equal(kind.values(tensor), np.full(_COUNT, value, "float32"))


def draw_calls(kind_name: str, operation: str, calls: int, engine: str, backend: str = "nccl") -> int:
    """Carry out drawn calls of *operation*, which *engine* has to serve. Returns how many there were."""
    kind = kind_named(kind_name)
    return drawn_calls.carry_out(operation, kind.make, kind.values, kind.without, backend, engine, calls)


def order_on_stream(kind_name: str, async_op: bool) -> dict[str, float]:
    """Check that a call comes after what is on the current stream and before what comes there next, and that nobody waits for it.

    Returns milliseconds.
    """
    kind = kind_named(kind_name)
    with _world(kind.device):
        tensor, gathered, again = (_floats(kind, value) for value in (1.0, 0.0, 0.0))
        dist.all_gather([gathered], tensor)  # connects the ranks
        dist.all_gather([again], tensor, async_op=True).wait()
        kind.synchronize()
        with kind.stream() as has_ended:
            kind.keep_busy()
            kind.fill(tensor, 5.0)
            began = time.monotonic()
            work = dist.all_gather([gathered], tensor, async_op=async_op)
            if work is not None:
                work.wait()
                assert not work.is_completed(), "the work says that it has completed while the stream is busy"
            dist.all_gather([again], gathered)
            took = time.monotonic() - began
            assert took < LONG / 3, f"the calls took {took:.2f} s: they wait for the stream"
            assert not has_ended(), "the stream is said to be idle at once"
            if kind.device is None:
                kind.synchronize()
            else:
                dist.barrier()
            assert has_ended(), "the stream is busy after the barrier"
        _assert_all(kind, gathered, 5.0)
        _assert_all(kind, again, 5.0)
        assert f"engine {BY_NCCL}" in shim.explain()
    return {
        "milliseconds to call": round(1000 * took, 3),
        "milliseconds in all": round(1000 * (time.monotonic() - began), 1),
    }


def overlap(kind_name: str) -> float:
    """Check that an asynchronous call ends while the current stream is busy with what came after it.

    Returns the milliseconds until it had ended.
    """
    kind = kind_named(kind_name)
    with _world():
        tensor, gathered = _floats(kind, 5.0), _floats(kind, 0.0)
        dist.all_gather([gathered], tensor, async_op=True).wait()
        kind.synchronize()
        with kind.stream() as has_ended:
            began = time.monotonic()
            work = dist.all_gather([gathered], tensor, async_op=True)
            kind.keep_busy()
            while not work.is_completed() and time.monotonic() - began < LONG / 2:
                time.sleep(0.0005)
            took = time.monotonic() - began
            assert work.is_completed(), "the work waits for what came after it on the current stream"
            assert not has_ended(), "the current stream is idle: it was not busy for long enough to tell"
            work.wait()
            kind.synchronize()
        _assert_all(kind, gathered, 5.0)
    return round(1000 * took, 3)


def capture(kind_name: str, async_op: bool) -> bool:
    """Check that a captured call is done when the graph is replayed, and not before, and that the group goes on.

    Returns whether it was replayed.
    """
    kind = kind_named(kind_name)
    with _world():
        tensor, gathered = _floats(kind, 1.0), _floats(kind, 0.0)
        dist.all_gather([gathered], tensor)
        dist.all_gather([gathered], tensor, async_op=True).wait()
        kind.synchronize()
        gathered = _floats(kind, 0.0)

        def body() -> None:
            work = dist.all_gather([gathered], tensor, async_op=async_op)
            if work is not None:
                work.wait()

        replay = kind.capture(body)
        time.sleep(0.3)  # in which the watch looks at what is under way
        _assert_all(kind, gathered, 0.0)
        if replay is not None:
            for _ in range(3):
                replay()
            kind.synchronize()
            _assert_all(kind, gathered, 1.0)
        dist.all_gather([gathered], tensor)
        _assert_all(kind, gathered, 1.0)
    return replay is not None


def capture_where_ranks_share(kind_name: str) -> None:
    """Check that ranks that share a device refuse a call that is captured, and that the group goes on."""
    kind = kind_named(kind_name)
    with _world():
        tensor, refused = _floats(kind, 1.0), []
        dist.all_reduce(tensor)

        def body() -> None:
            try:
                dist.all_reduce(tensor)
            except UnsupportedError as error:
                refused.append(error)

        kind.capture(body)
        assert refused, "the call was not refused"
        _assert_all(kind, tensor, dist.get_world_size())


def come_and_go(kind_name: str, times: int, seconds: float) -> dict[str, Any]:
    """Enter the world, call and leave, *times* times or for *seconds*, and check that nothing stays."""
    kind = kind_named(kind_name)
    took: list[float] = []
    held: list[tuple[int, int, int]] = []
    tensor = _floats(kind, 1.0)
    until = time.monotonic() + seconds
    while len(took) < times and (time.monotonic() < until or len(took) < 4):
        began = time.monotonic()
        with _world():
            dist.all_reduce(tensor)
            dist.all_reduce(tensor, async_op=True).wait()
        kind.synchronize()
        gc.collect()
        took.append(time.monotonic() - began)
        held.append((kind.held(), len(list(Path("/proc/self/fd").iterdir())), threading.active_count()))
    told = {
        "times": len(took),
        "milliseconds each": round(1000 * float(np.median(took)), 1),
        "held after the second and the last": [held[1][0], held[-1][0]],
        "open files": [held[1][1], held[-1][1]],
        "threads": [held[1][2], held[-1][2]],
    }
    memory, files, running = (last - second for last, second in zip(held[-1], held[1], strict=True))
    most = kind.largest_growth * (
        8 if int(os.environ["WORLD_SIZE"]) > 1 else 1
    )  # another rank has its memory yet, or again
    assert memory <= most, f"the device's memory that is taken grows: {told}"
    assert max(files, running) < max(1, len(took) // 4), f"open files or threads grow: {told}"
    return told


def exchange_messages(kind_name: str) -> None:
    """Send to the other rank and receive from it, at once and one after the other."""
    kind = kind_named(kind_name)
    with _world():
        rank = dist.get_rank()
        mine, other = _floats(kind, 1.0 + rank), _floats(kind, 0.0)
        works = [dist.isend(mine, 1 - rank), dist.irecv(other, 1 - rank)]
        for work in works:
            work.wait()
        _assert_all(kind, other, 2.0 - rank)
        for turn in range(3):
            tensor = _floats(kind, 10.0 + turn)
            if rank == turn % 2:
                dist.send(tensor, 1 - rank)
            else:
                dist.recv(other, 1 - rank)
                _assert_all(kind, other, 10.0 + turn)


def lose_the_other(kind_name: str) -> dict[str, Any]:
    """Be killed, as rank 1, while rank 0 is in a call. Returns how long that took on rank 0, and what it was told."""
    kind = kind_named(kind_name)
    dist.init_process_group("nccl")
    tensor = _floats(kind, 1.0)
    dist.all_reduce(tensor)
    kind.synchronize()
    if dist.get_rank() == 1:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
        time.sleep(60.0)
    began, told = time.monotonic(), ""
    try:
        dist.all_reduce(tensor)
    except PeerLostError as error:
        told = str(error)
    took = time.monotonic() - began
    kind.synchronize()
    dist.destroy_process_group()
    assert "rank 1" in told, f"a PeerLostError about rank 1 was expected, got {told!r}"
    assert took < 10.0, f"it took {took:.1f} s to tell"
    return {
        "seconds until it was told": round(took, 3),
        "told": told.splitlines()[0],
        "seconds in all": round(time.monotonic() - began, 3),
    }
