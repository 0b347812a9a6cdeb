"""What the ranks of ``test_accelerators`` do."""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_calls import agrees_with_the_oracle, name_of
from fake_npu import ForeignTensor, NpuTensor, plug_in

import shim
from shim.conformance.soak.operations import OPERATIONS
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import (
    ArgumentError,
    DeviceTensorError,
    MismatchError,
    PeerLostError,
    ShimError,
    TensorError,
    UnsupportedError,
)

ME = Caller("test", input="tensor", output="result")
SUM, AVG, PREMUL_SUM = ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM
UNREDUCED = ("uint32", "uint64")  # by MIN and MAX, which the table has too


@contextmanager
def world(backend: str = "") -> Iterator[ProcessGroup]:
    plug_in()
    group = groups.enter_world(ME, "test", backend=backend)
    try:
        yield group
    finally:
        groups.leave_world("test")


def filled(value: float, count: int = 4, dtype: str = "float64") -> NpuTensor:
    return NpuTensor.of(np.full(count, value, dtype))


def summed(group: ProcessGroup, tensor: Any, op: ReduceOp = SUM, factor: float = 1.0) -> Any:
    """Have *tensor* summed up in place, and return its elements."""
    calls.all_reduce(ME, group, tensor, tensor, op, factor, now=True)
    return tensor.values().tolist()


def table(operation: str) -> None:
    """Make random calls of the operation of the table called so."""
    made = next(one for one in OPERATIONS if name_of(one) == operation)
    with world() as group:
        agrees_with_the_oracle(group, made, NpuTensor.of, NpuTensor.values, unreduced=UNREDUCED)


def reduce_special_numbers() -> None:
    """See sums that wrap around, and averages of what could not be summed up."""
    with world() as group:
        assert summed(group, filled(4e9, dtype="uint32"))[0] == group.size * 4_000_000_000 % (1 << 32)
        assert summed(group, filled(30000.0, dtype="float16"), AVG) == [30000.0] * 4
        assert summed(group, filled(1.0, dtype="float16"), PREMUL_SUM, 2.0) == [2.0 * group.size] * 4
        with pytest.raises(ArgumentError, match="factor must be one that float16 can hold"):
            summed(group, filled(1.0, dtype="float16"), PREMUL_SUM, 1e9)


def refuse() -> None:
    """See what is refused on this rank, and what the others are told; the group can be used afterwards."""
    with world() as group:
        tensor = filled(1.0)
        own_format = _InOwnFormat.of(np.ones(4)).as_subclass(_InOwnFormat)
        given: list[tuple[Any, ReduceOp, type[ShimError], str]] = [
            (NpuTensor.of(np.ones(4, "int32")), ReduceOp.BXOR, UnsupportedError, "op BXOR of elements of type int32"),
            (ForeignTensor(), SUM, TensorError, "must be torch's for hccl, .* got a fake_npu.ForeignTensor"),
            (NpuTensor.of(np.ones((4, 2))).T, SUM, TensorError, "must be contiguous"),
            (own_format, SUM, TensorError, "must have the usual order of elements"),
            (filled(1.0).at(1), SUM, TensorError, "must be on npu:0, which this rank uses in the group, got .* npu:1"),
        ]
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        for wrong, op, kind, told in given:
            is_wrong = group.rank == 0
            mine, mine_op = (wrong, op) if is_wrong else (tensor, SUM)
            expected, message = (kind, told) if is_wrong else (MismatchError, "rank 0: refused")
            with pytest.raises(expected, match=message):
                calls.all_reduce(ME, group, mine, mine, mine_op, now=True)
        with pytest.raises(TensorError, match="must have the usual order of elements"):  # before anything is sent
            calls.send(ME, group, own_format, (group.rank + 1) % group.size)
        mixed = tensor if group.rank == 0 else array("d", [1.0] * 4)
        with pytest.raises(MismatchError, match="on extension"):
            calls.all_reduce(ME, group, mixed, mixed, SUM, now=True)
        assert summed(group, tensor) == [float(group.size) ** 2] * 4
        assert "engine hccl" in str(shim.explain())


class _InOwnFormat(NpuTensor):
    """A tensor of which torch gives a copy where it is asked for a view."""

    def as_strided(self, *how: Any, **more: Any) -> Any:
        return self.as_subclass(torch.Tensor).clone().as_strided(*how, **more)


def refuse_a_backend() -> None:
    """See that a backend that does not serve the device is not replaced by one that does."""
    with world("cpu:gloo,npu:ucc") as group, pytest.raises(DeviceTensorError, match="backend ucc does not serve it"):
        summed(group, filled(1.0))


def refuse_in_a_graph() -> None:
    """See that nothing is agreed on while torch captures a graph, where the device's module tells, and that a backend leaves the process."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        assert summed(group, filled(1.0)) == [float(group.size)] * 4
        assert group._of_devices["extension"].links._made[-1].backend.handling == "0"
        assert "TORCH_HCCL_ASYNC_ERROR_HANDLING" not in os.environ
        npu = torch.get_device_module("npu")
        patch.setattr(npu, "is_current_stream_capturing", lambda: True, raising=False)
        with pytest.raises(UnsupportedError, match="operations on npu cannot be captured in a graph"):
            summed(group, filled(1.0))
        patch.undo()
        assert summed(group, filled(1.0)) == [float(group.size)] * 4


def order_streams() -> None:
    """See that an operation waits for what the caller's stream holds, and that nobody but ``wait()`` makes that stream wait for it."""
    with world() as group, pytest.MonkeyPatch.context() as patch:
        summed(group, filled(1.0))
        own = group._of_devices["extension"].links._made[-1].stream
        told: list[tuple[str, int, bool]] = []

        class Event(torch.Event):
            def record(self, stream: Any = None) -> None:
                told.append(("recorded", id(self), stream is own))
                super().record(stream)

            def wait(self, stream: Any = None) -> None:
                told.append(("awaited", id(self), stream is own))
                super().wait(stream)

        patch.setattr(torch, "Event", Event)
        tensor = filled(1.0)
        work = calls.all_reduce(ME, group, tensor, tensor, SUM)
        work.start()
        while not work.is_completed():
            time.sleep(0.001)
        (begin, *_), (_, end, _) = told[0][1:], told[2]
        assert told == [("recorded", begin, False), ("awaited", begin, True), ("recorded", end, True)]
        assert begin != end
        work.wait()
        assert told[3:] == [("awaited", end, False)]
        assert tensor.values().tolist() == [float(group.size)] * 4


def pass_messages_beside_collectives() -> None:
    """Send and receive while a collective is under way, in a group of two, whose ranks come to both in another order."""
    with world() as group:
        pair = groups.new_group(ME, [0, 1])
        tensor, message = filled(1.0), filled(5.0 + group.rank)
        if pair.rank == 0:
            sent = calls.send(ME, pair, message, 1, tag=7)
            sent.start()
            assert summed(pair, tensor) == [2.0] * 4
            sent.wait()
            assert calls.received(ME, pair, message, None, 8) == 1
            assert message.values().tolist() == [6.0] * 4
            calls.send(ME, pair, message, 1, tag=9, now=True)
            with pytest.raises(PeerLostError, match="rank 1 left the group"):  # which has dropped the message
                calls.send(ME, pair, message, 1, tag=10, now=True)
        elif pair.rank == 1:
            assert summed(pair, tensor) == [2.0] * 4
            other = filled(0.0)
            calls.receive(ME, pair, other, None, tag=7).wait()
            assert other.values().tolist() == [5.0] * 4
            calls.send(ME, pair, message, 0, tag=8, now=True)
            with pytest.raises(MismatchError, match="as what rank 0 sent"):
                calls.receive(ME, pair, filled(0.0, 3), 0, tag=9).wait()
            with pytest.raises(
                MismatchError, match="rank 0 sent a tensor on a device where this rank receives 48 elements"
            ):
                calls.receive(ME, pair, np.zeros(48, "uint8"), 0, tag=10).wait()


def leave_a_message() -> None:
    """Leave in good order with a message that nobody takes: the others go on."""
    with world() as group:
        summed(group, filled(1.0))
        others = groups.new_group(ME, list(range(1, group.size)))
        if group.rank == 0:
            calls.send(ME, group, filled(1.0), 1).start()
            time.sleep(0.1)
            return
        until = time.monotonic() + 5.0
        while not group.engine.is_gone(0) and time.monotonic() < until:
            time.sleep(0.01)
        assert group.engine.has_left(0)
        assert summed(others, filled(1.0)) == [float(others.size)] * 4


def change_a_list_meanwhile() -> None:
    """Put other tensors into the list of a started call, which is about those that were in it."""
    with world() as group, torch.inference_mode():
        outputs = [filled(0.0) for _ in range(group.size)]
        kept = list(outputs)
        work = calls.all_gather(ME, group, outputs, filled(1.0 + group.rank))
        outputs.clear()
        work.wait()
        assert [one.values()[0] for one in kept] == [1.0 + rank for rank in range(group.size)]


def use_the_frontend() -> None:
    """Call the torch frontend as a program for the accelerator does."""
    plug_in()
    from shim.frontends.torch import distributed as dist

    dist.init_process_group("cpu:gloo,npu:hccl", device_id=torch.device("npu", 0))
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = filled(float(rank))
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    work.wait()
    assert tensor.values().tolist() == [float(sum(range(size)))] * 4
    parts = [filled(0.0) for _ in range(size)]
    dist.all_gather(parts, filled(float(rank)))
    assert [part.values()[0] for part in parts] == list(range(size))
    on_host = torch.ones(2)
    dist.all_reduce(on_host)
    assert on_host.tolist() == [float(size)] * 2
    dist.barrier()
    assert dist.is_backend_available("hccl")
    assert not dist.is_xccl_available()
    assert dist.get_default_backend_for_device("npu") == "hccl"
    dist.destroy_process_group()
    dist.init_process_group()
    assert dist.get_backend_config() == "npu:hccl"
    dist.destroy_process_group()


def call_hooks() -> None:
    """Have hooks of torch's called around calls on the accelerator, once each, and by no call once they are taken back."""
    plug_in()
    from shim.frontends.torch import distributed as dist

    dist.init_process_group("cpu:gloo,npu:hccl")
    group, told = dist.group.WORLD, []
    assert group is not None
    for turn in range(2):  # the engine of the device is made in the first
        group.register_pre_hook(0, lambda given: told.append((given.name.name, given.input_tensors[0])))
        group.register_post_hook(0, lambda given: told.append(given.work))
        tensor, on_host = filled(1.0), torch.ones(2)
        dist.all_reduce(tensor)
        dist.all_reduce(on_host)
        assert [one[1] is two for one, two in zip(told[::2], (tensor, on_host), strict=True)] == [True, True], turn
        assert all(work.wait() for work in told[1::2])
        group.unregister_pre_hook(0)
        group.unregister_post_hook(0)
        told.clear()
        dist.all_reduce(tensor)
        assert told == []
        assert tensor.values().tolist() == [float(dist.get_world_size() ** 2)] * 4
    dist.destroy_process_group()


def stage() -> None:
    """Have the backend gloo carry tensors on the accelerator through host memory."""
    with world("gloo") as group:
        assert summed(group, filled(1.0)) == [float(group.size)] * 4
        assert "through host memory" in str(shim.explain())


def leave_nothing() -> None:
    """See that threads and descriptors go with the group, those of a network's connections a moment later."""
    before = _held()
    for _ in range(4):
        with world() as group:
            for _ in range(3):
                summed(group, filled(1.0))
    until = time.monotonic() + 5.0
    while not _held_no_more_than(before) and time.monotonic() < until:
        time.sleep(0.01)
    assert _held_no_more_than(before)


def _held() -> tuple[int, int]:
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


def _held_no_more_than(before: tuple[int, int]) -> bool:
    return all(now <= then for now, then in zip(_held(), before, strict=True))
