"""What the ranks of ``test_accelerators`` do."""

from __future__ import annotations

import os
import signal
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from fake_npu import ForeignTensor, NpuTensor, plug_in
from table_on_devices import agrees_with_the_oracle, name_of

import shim
from shim.conformance.soak.operations import OPERATIONS
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.accelerators import moves
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import MismatchError, ShimError, TensorError, UnsupportedError

ME = Caller("test", input="tensor", output="result")
SUM = ReduceOp.SUM
NOT_DONE = ("float8_e4m3fn", "float8_e5m2", "uint32", "uint64")  # of reductions


@contextmanager
def world(backend: str = "") -> Iterator[ProcessGroup]:
    plug_in()
    group = groups.enter_world(ME, "test", backend=backend)
    try:
        yield group
    finally:
        groups.leave_world("test")


def filled(value: float, count: int = 4) -> NpuTensor:
    return NpuTensor.of(np.full(count, value))


def table(operation: str) -> None:
    """Make random calls of the operation of the table called so."""
    made = next(one for one in OPERATIONS if name_of(one) == operation)
    with world() as group:
        agrees_with_the_oracle(group, made, NpuTensor.of, NpuTensor.values, without=NOT_DONE)


def refuse() -> None:
    """See what is refused on this rank, and what the others are told; the group can be used afterwards."""
    with world() as group:
        tensor = filled(1.0)
        given: list[tuple[Any, ReduceOp, type[ShimError], str]] = [
            (
                NpuTensor.of(np.ones(4, "int32")),
                ReduceOp.BXOR,
                UnsupportedError,
                "op BXOR of elements of type int32 is not",
            ),
            (
                ForeignTensor(),
                SUM,
                TensorError,
                "must be torch's for hccl, which torch's backend serves, got a fake_npu.ForeignTensor",
            ),
            (NpuTensor.of(np.ones((4, 2))).T, SUM, TensorError, "must be contiguous"),
            (
                filled(1.0).at(1),
                SUM,
                TensorError,
                "must be on npu:0, which this rank uses in the group, got tensors on npu:1",
            ),
        ]
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        for wrong, op, kind, told in given:
            is_wrong = group.rank == 0
            mine, mine_op = (wrong, op) if is_wrong else (tensor, SUM)
            expected, message = (kind, told) if is_wrong else (MismatchError, "rank 0: refused")
            with pytest.raises(expected, match=message):
                calls.all_reduce(ME, group, mine, mine, mine_op, now=True)
        mixed = tensor if group.rank == 0 else array("d", [1.0] * 4)
        with pytest.raises(MismatchError, match="on extension"):
            calls.all_reduce(ME, group, mixed, mixed, SUM, now=True)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        assert tensor.values().tolist() == [9.0] * 4
        assert "engine hccl" in str(shim.explain())


def order_streams() -> None:
    """See that an operation waits for what the caller's stream holds, and that nobody but ``wait()`` makes that stream wait for it."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        tensor, told = filled(1.0), []

        class Event(torch.Event):
            def record(self, stream: Any = None) -> None:
                told.append(("recorded", id(self), stream.stream_id))
                super().record(stream)

            def wait(self, stream: Any = None) -> None:
                told.append(("awaited", id(self), stream.stream_id))
                super().wait(stream)

        patch.setattr(torch, "Event", Event)
        work = calls.all_reduce(ME, group, tensor, tensor, SUM)
        work.start()
        while not work.is_completed():
            time.sleep(0.001)
        assert [one[0] for one in told] == ["recorded", "awaited", "recorded"]
        assert told[0][1] == told[1][1] != told[2][1]
        work.wait()
        assert told[3][:2] == ("awaited", told[2][1])
        assert tensor.values().tolist() == [3.0] * 4


def use_the_frontend() -> None:
    """Call the torch frontend as a program for the accelerator does."""
    plug_in()
    from shim.frontends.torch import distributed as dist

    dist.init_process_group("cpu:gloo,npu:hccl", device_id=torch.device("npu", 0))
    rank = dist.get_rank()
    tensor = filled(float(rank))
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    work.wait()
    assert tensor.values().tolist() == [3.0] * 4
    parts = [filled(0.0) for _ in range(3)]
    dist.all_gather(parts, filled(float(rank)))
    assert [part.values()[0] for part in parts] == [0.0, 1.0, 2.0]
    on_host = torch.ones(2)
    dist.all_reduce(on_host)
    assert on_host.tolist() == [3.0, 3.0]
    dist.barrier()
    assert dist.is_backend_available("hccl")
    assert dist.get_default_backend_for_device("npu") == "hccl"
    dist.destroy_process_group()


def stage() -> None:
    """Have the backend gloo carry tensors on the accelerator through host memory."""
    with world("gloo") as group:
        tensor = filled(float(group.rank))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        assert tensor.values().tolist() == [3.0] * 4
        assert "through host memory" in str(shim.explain())


def fail_on_one_rank(operation: str) -> str:
    """Return what this rank is told when the backend fails on rank 2 alone."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        tensor, room = filled(1.0, 6), filled(1.0, 6)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        if group.rank == 2:
            patch.setattr(moves, operation, _fail)
        with pytest.raises(ShimError) as caught:
            getattr(calls, operation)(ME, group, room, tensor, *([SUM] if operation == "all_reduce" else []), now=True)
    return str(caught.value)


def _fail(*_: object) -> None:
    raise RuntimeError("the device is on fire\nand more")


def lose_a_rank() -> tuple[float, str]:
    """Return the seconds until the survivors' collective has ended after a rank's death in it, and what they are told."""
    with world() as group:
        tensor = filled(1.0)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        if group.rank == 1:
            moves.all_reduce = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(ShimError) as caught:
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
    return time.monotonic() - began, f"{type(caught.value).__name__}: {caught.value}"
