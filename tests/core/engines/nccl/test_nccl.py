"""The engine for CUDA tensors, on a fake driver and a fake NCCL whose memory no instruction of the host can touch."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_device import FakeTensor, Stream, check, current, load, on_stream, world
from gates import Gate

import shim
from shim.conformance import oracle
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.devices import watched_links
from shim.core.reduce_ops import ReduceOp
from shim.core.tensors import readers
from shim.errors import EngineError, MismatchError, ShimError, TensorError, UnsupportedError

ME = Caller("test", input="tensor", output="result")
SUM = ReduceOp.SUM


def inputs_of(size: int, dtype: str, count: int = 6, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 2 if dtype == "bool" else 5, count).astype(dtype) for _ in range(size)]


@pytest.mark.ranks(2, 3)
def test_parts_of_different_sizes(rank: int, world_size: int) -> None:
    with world() as group:
        sizes = [3 * one for one in range(world_size)]  # of which the first has nothing
        inputs = inputs_of(world_size, "float32", sum(sizes))
        mine = FakeTensor(inputs[rank], rank)
        part = FakeTensor(np.zeros(sizes[rank], "float32"), rank)
        calls.reduce_scatter(ME, group, part, mine, SUM, input_splits=sizes, now=True)
        check(part, oracle.cut(sum(inputs), sizes)[rank])
        outputs = [FakeTensor(np.zeros(sizes[rank], "float32"), rank) for _ in sizes]
        calls.all_to_all(ME, group, outputs, mine, input_splits=sizes, now=True)
        for one, given in zip(outputs, inputs, strict=True):
            check(one, oracle.cut(given, sizes)[rank])
        whole = FakeTensor(np.zeros(sum(sizes), "float32"), rank)
        calls.all_gather(ME, group, whole, FakeTensor(inputs[rank][: sizes[rank]], rank), output_splits=sizes, now=True)
        check(whole, np.concatenate([one[:size] for one, size in zip(inputs, sizes, strict=True)]))


@pytest.mark.ranks(2)
def test_parts_may_lie_together_on_one_rank_and_apart_on_another(rank: int) -> None:
    """The ranks make the same call of NCCL all the same."""
    with world() as group:
        whole = FakeTensor(np.zeros(6, "float32"), rank)
        for parts in (whole.parts(2), [FakeTensor(np.zeros(3, "float32"), rank) for _ in range(2)])[:: 1 - 2 * rank]:
            calls.all_gather(ME, group, parts, FakeTensor(np.full(3, 1.0 + rank, "float32"), rank), now=True)
            for place, part in enumerate(parts):
                check(part, np.full(3, 1.0 + place, "float32"))
            summed = FakeTensor(np.zeros(3, "float32"), rank)
            calls.reduce_scatter(ME, group, summed, parts, SUM, now=True)
            check(summed, np.full(3, 2.0 + 2 * rank, "float32"))


@pytest.mark.ranks(2)
def test_what_nccl_has_under_another_name(rank: int) -> None:
    with world() as group:
        flags = FakeTensor(np.array([True, False, rank == 1]), rank)
        calls.all_reduce(ME, group, flags, flags, ReduceOp.BOR, now=True)
        assert flags.values().tolist() == [True, False, True]
        calls.all_reduce(
            ME, group, flags, FakeTensor(np.array([True, False, rank == 1]), rank), ReduceOp.BAND, now=True
        )
        assert flags.values().tolist() == [True, False, False]
        numbers = FakeTensor(np.array([1 + 2j, 3.0], "complex64"), rank)
        calls.all_reduce(ME, group, numbers, numbers, ReduceOp.AVG, now=True)
        check(numbers, np.array([1 + 2j, 3.0], "complex64"))
        scaled = FakeTensor(np.ones(3, "float32"), rank)
        calls.all_reduce(ME, group, scaled, scaled, ReduceOp.PREMUL_SUM, factor=2.0 + rank, now=True)
        check(scaled, np.full(3, 5.0, "float32"))


@pytest.mark.ranks(2)
@pytest.mark.parametrize(
    ("dtype", "op"), [("int16", SUM), ("complex64", ReduceOp.PRODUCT), ("int32", ReduceOp.BAND), ("bool", ReduceOp.AVG)]
)
def test_what_nccl_lacks_is_refused_on_all_ranks(rank: int, dtype: str, op: ReduceOp) -> None:
    with world() as group:
        tensor = FakeTensor(np.ones(2, dtype), rank)
        if rank == 0:
            with pytest.raises((UnsupportedError, ValueError), match=op.name):
                calls.all_reduce(ME, group, tensor, tensor, op, now=True)
        else:
            with pytest.raises(MismatchError, match="rank 0: refused"):
                calls.all_reduce(ME, group, np.ones(2), np.ones(2), SUM, now=True)
        calls.all_reduce(ME, group, tensor, tensor, ReduceOp.MAX, now=True) if dtype == "int32" else None


@pytest.mark.ranks(2)
def test_calls_of_both_kinds_follow_each_other_in_one_group(rank: int) -> None:
    with world() as group:
        host = np.full(3, 1.0)
        for turn in range(20):
            there = FakeTensor(np.full(3, float(turn)), rank)
            calls.all_reduce(ME, group, there, there, SUM, now=True)
            calls.all_reduce(ME, group, host, np.full(3, float(turn)), SUM, now=True)
            check(there, np.full(3, 2.0 * turn))
            check(host, np.full(3, 2.0 * turn))


@pytest.mark.ranks(2)
def test_host_and_device_in_one_call_are_told_apart(rank: int) -> None:
    with world() as group:
        tensor: Any = FakeTensor(np.ones(3), rank) if rank == 0 else np.ones(3)
        for _ in range(2):
            with pytest.raises(MismatchError, match="cuda on rank 0, cpu on rank 1"):
                calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        tensor = FakeTensor(np.ones(3), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 2.0))
        assert "; for tensors on cuda: engine nccl, NCCL 2.28.9 of /" in shim.explain()


class WithDlpackAlone:
    """A tensor of a producer that has ``__dlpack__``, and no functions in C: its stream is taken for the legacy default one."""

    def __init__(self, tensor: FakeTensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **keywords: object) -> Any:
        return self._tensor.as_capsule()


@pytest.mark.ranks(2)
def test_a_tensor_that_has_dlpack_alone(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        calls.all_reduce(ME, group, WithDlpackAlone(tensor), WithDlpackAlone(tensor), SUM, now=True)
        check(tensor, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_a_rank_keeps_to_one_device_in_a_group(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.ones(3), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        other = FakeTensor(np.ones(3), 4 if rank == 0 else rank)
        with pytest.raises((TensorError, MismatchError), match="must be on cuda:0, which this rank uses in the group"):
            calls.all_reduce(ME, group, other, other, SUM, now=True)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 4.0))


@pytest.mark.ranks(2)
def test_an_operation_is_ordered_on_the_current_stream(rank: int) -> None:
    """The stream is busy until this test lets it go on, and nobody waits for it but who asks for the values."""
    with world() as group:
        stream, gate = Stream(rank), Gate()
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)  # connects the ranks
        check(tensor, np.full(3, 3.0))
        gate.close(stream)
        with on_stream(stream):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
            work = calls.all_reduce(ME, group, tensor, tensor, SUM)
            work.start()
            work.wait()
            assert not work.is_completed()
        gate.open()
        stream.synchronize()
        assert work.is_completed()
        check(tensor, np.full(3, 12.0))


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:shim")


@pytest.mark.ranks(2)
def test_nothing_is_left_of_a_group(rank: int) -> None:
    before = mappings()
    gc.disable()
    try:
        with world() as group:
            tensor = FakeTensor(np.ones(3), rank)
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
            work = calls.all_reduce(ME, group, tensor, tensor, SUM)
            work.start()
            work.wait()
            calls.barrier(ME, group).wait()
            del group, work, tensor
        assert mappings() == before
    finally:
        gc.enable()


@pytest.mark.ranks(2)
def test_pools_keep_their_memory(rank: int) -> None:
    kept, pool = ctypes.c_uint64(), ctypes.c_void_p()
    with world() as group:
        tensor = FakeTensor(np.ones(3), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        with current(rank) as cuda:
            assert cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), rank) == 0
            assert cuda.cuMemPoolGetAttribute(pool, 4, ctypes.byref(kept)) == 0
        assert kept.value == 64 << 20


@pytest.mark.ranks(2)
def test_no_communicator_is_asked_while_it_is_destroyed(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake ends the process of whoever asks one then, as the watch would."""
    monkeypatch.setenv("FAKE_NCCL_DESTROYS_SLOWLY", "1")
    with world() as group:
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_calls_that_return_before_they_are_done_are_refused(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_COMM_BLOCKING", "0")
    with world() as group:
        tensor = FakeTensor(np.ones(3), rank)
        with pytest.raises(EngineError, match="NCCL_COMM_BLOCKING is 0"):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("now", [True, False], ids=["now", "started"])
def test_tensors_of_mindspore_are_refused(rank: int, now: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell on which stream they are; in host memory they are as good as others."""
    mindspore = pytest.importorskip("mindspore")
    there, device = FakeTensor(np.ones(3, "float32"), rank), property(lambda _: f"GPU:{rank}")
    access = readers._mindspore_access(mindspore.Tensor)._replace(device=device)  # of one that is built for GPUs
    monkeypatch.setattr(readers, "_mindspore_access", lambda _: access)
    members = {"__module__": "mindspore", "device": device, "data_ptr": lambda _: there._address.value}
    tensor = type("Tensor", (mindspore.Tensor,), members)(np.ones(3, "float32"))
    with world() as group:
        with pytest.raises(TensorError, match="a tensor of MindSpore on a GPU, whose stream cannot be told"):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=now)
        calls.all_reduce(ME, group, there, there, SUM, now=True)
        check(there, np.full(3, 2.0, "float32"))


@pytest.mark.ranks(1)
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM])
@pytest.mark.parametrize("count", [0, 5, 9001])
def test_a_rank_that_is_alone_reduces_all_it_has(rank: int, op: ReduceOp, count: int) -> None:
    """NCCL before 2.29.7 leaves the last elements out where it scales more than 16 KiB, and so does the fake."""
    with world() as group:
        given = np.arange(float(count))
        factor = 3.0 if op is ReduceOp.PREMUL_SUM else 1.0
        options = {"factor": factor} if op is ReduceOp.PREMUL_SUM else {}
        for move in (calls.all_reduce, calls.reduce_scatter):
            output = FakeTensor(np.zeros(count), rank)
            move(ME, group, output, FakeTensor(given, rank), op, now=True, **options)
            check(output, factor * given)
        output = FakeTensor(np.zeros(count), rank)
        calls.reduce(ME, group, output, FakeTensor(given, rank), op, 0, now=True, **options)
        check(output, factor * given)


@pytest.mark.ranks(2)
def test_an_error_of_nccl_is_told_to_the_other_ranks(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their operations would wait for this rank's, which has ended its own."""
    with world() as group:
        tensor = FakeTensor(np.ones(3), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        calls.barrier(ME, group, now=True)
        if rank == 0:
            monkeypatch.setenv("FAKE_NCCL_FAILS", "1")
        until = time.monotonic() + 10.0
        while group.engine.is_usable() and time.monotonic() < until:
            time.sleep(0.01)
        told = "NCCL has failed in the background" if rank == 0 else "rank 0 gave the group up .NCCL has failed"
        with pytest.raises(ShimError, match=told):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)


@pytest.mark.ranks(2)
def test_closing_does_not_wait_for_an_operation_without_an_end(rank: int) -> None:
    load()
    group, stream, gate, tensor = groups.enter_world(ME, "test"), Stream(rank), Gate(), FakeTensor(np.ones(3), rank)
    calls.all_reduce(ME, group, tensor, tensor, SUM).wait()
    groups.set_timeout(group, 0.5)
    if rank == 1:
        gate.close(stream)
        threading.Timer(3.0, gate.open).start()  # all that is on the device is waited for in the end
    with on_stream(stream):
        calls.all_reduce(ME, group, tensor, tensor, SUM).wait()
    began = time.monotonic()
    groups.leave_world("test")
    assert rank == 1 or time.monotonic() - began < 2.5


@pytest.mark.ranks(2)
def test_a_wait_for_the_device_tells_what_was_cut_off(rank: int) -> None:
    """Its event is reached then, too."""
    with world() as group:
        stream, gate, tensor = Stream(rank), Gate(), FakeTensor(np.ones(3), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM).wait()
        gate.close(stream)
        with on_stream(stream):
            work = calls.all_reduce(ME, group, tensor, tensor, SUM)
            work.wait()
            threading.Timer(0.2, group._of_devices["cuda"].links.end, (EngineError("a rank is lost"),)).start()
            threading.Timer(0.5, gate.open).start()
            with pytest.raises(EngineError, match="a rank is lost"):
                work.wait_on_device(20.0)


@pytest.mark.ranks(2)
def test_an_operation_that_does_not_end_on_the_device_ends_the_group(rank: int) -> None:
    """All ranks have come to it, so that nobody is missing in host memory."""
    with world() as group:
        stream, gate, tensor = Stream(rank), Gate(), FakeTensor(np.ones(3), rank)
        calls.all_reduce(ME, group, tensor, tensor, SUM).wait()
        groups.set_timeout(group, 0.5)
        if rank == 1:
            gate.close(stream)
        with on_stream(stream):
            calls.all_reduce(ME, group, tensor, tensor, SUM).start()
        until = time.monotonic() + 10.0
        while group.engine.is_usable() and time.monotonic() < until:
            time.sleep(0.01)
        gate.open()
        with pytest.raises(ShimError, match=r"on cuda has not ended within 0\.5 s"):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)


@pytest.mark.ranks(2)
def test_the_next_operation_lets_the_tensors_of_those_go_that_have_ended(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch would do so a while later: a model whose parts are gathered one by one would not fit."""
    monkeypatch.setattr(watched_links, "_BETWEEN_LOOKS", 60.0)
    with world() as group:
        seen = []
        for _ in range(3):
            gathered = FakeTensor(np.zeros(6), rank)
            work = calls.all_gather(ME, group, gathered, FakeTensor(np.ones(3), rank), whole=True)
            work.wait()
            gathered.values()
            seen.append(weakref.ref(gathered))
            del gathered, work
        gc.collect()
        assert [one() is None for one in seen[:2]] == [True, True]
