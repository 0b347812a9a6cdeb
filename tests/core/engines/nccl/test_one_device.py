"""Ranks that share a device: what their operations go over, and what is left of it. The table itself is in test_table_on_devices."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_device import FakeTensor, Stream, check, load, on_stream, world
from gates import Gate

import shim
from shim.conformance import oracle
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.nccl import device_links, kernels
from shim.core.engines.nccl.library import library
from shim.core.engines.nccl.one_device_link import OneDeviceLink
from shim.core.engines.nccl.pool_turns import Turns
from shim.core.reduce_ops import ReduceOp
from shim.errors import EngineError, ShimError, UnsupportedError

ME = Caller("test", input="tensor", output="result")
SUM = ReduceOp.SUM


def all_collectives(group: Any, rank: int, size: int, count: int) -> None:
    """Carry out each with *count* elements for each rank on device 0, and compare."""
    inputs = [np.random.default_rng(one).integers(0, 9, count * size).astype("float32") for one in range(size)]
    parts = [oracle.cut(one, [count] * size) for one in inputs]
    mine, whole, part = FakeTensor(inputs[rank]), FakeTensor(inputs[0]), FakeTensor(parts[0][0])
    calls.all_reduce(ME, group, whole, mine, SUM, now=True)
    check(whole, sum(inputs))
    calls.reduce_scatter(ME, group, part, mine, SUM, now=True, whole=True)
    check(part, oracle.cut(sum(inputs), [count] * size)[rank])
    calls.reduce(ME, group, whole, mine, ReduceOp.MAX, 1, now=True)
    check(whole, np.max(inputs, axis=0) if rank == 1 else sum(inputs))
    calls.all_gather(ME, group, whole, FakeTensor(parts[rank][0]), now=True, whole=True)
    check(whole, np.concatenate([one[0] for one in parts]))
    calls.all_to_all(ME, group, whole, mine, now=True)
    check(whole, np.concatenate([one[rank] for one in parts]))
    calls.gather(ME, group, whole if rank == 0 else None, FakeTensor(parts[rank][1]), 0, now=True)
    if rank == 0:
        check(whole, np.concatenate([one[1] for one in parts]))
    calls.scatter(ME, group, part, mine if rank == 1 else None, 1, now=True)
    check(part, parts[1][rank])
    calls.broadcast(ME, group, mine, 1, now=True)
    check(mine, inputs[1])


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("count", [1, 5, 64, 1000])
def test_what_does_not_fit_into_a_pool_goes_in_pieces(
    rank: int, world_size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_HALF_FOR_ALL", "_HALF_FOR_MESSAGES"):
        monkeypatch.setattr(device_links, name, 192)
    with world() as group:
        all_collectives(group, rank, world_size, count)
        sent, received = FakeTensor(np.full(count, 1.0 + rank)), FakeTensor(np.zeros(count))
        works = [
            calls.send(ME, group, sent, (rank + 1) % world_size),
            calls.receive(ME, group, received, (rank - 1) % world_size),
        ]
        for work in works:
            work.start()
        all_collectives(group, rank, world_size, 7)
        for work in works:
            work.wait()
        check(received, np.full(count, 1.0 + (rank - 1) % world_size))


@pytest.mark.ranks(2)
def test_the_engine_says_so(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.ones(3))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        assert "for tensors on cuda: engine nccl, whose ranks share a device" in shim.explain()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_short_floats_are_rounded_to_the_nearest(
    rank: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All numbers are added to some other ones, as float32, in which the sum of two is exact or rounded once."""
    import ml_dtypes

    monkeypatch.setattr(kernels, "_MOST_BLOCKS", 100)  # whose threads take several elements each
    kind = np.dtype(dtype if dtype == "float16" else ml_dtypes.bfloat16)
    bits = np.arange(1 << 16, dtype="uint16")
    inputs = [bits.view(kind), np.random.default_rng(1).permutation(bits).view(kind)]
    with np.errstate(all="ignore"):
        expected = (inputs[0].astype("float32") + inputs[1].astype("float32")).astype(kind)
    with world() as group:
        tensor = FakeTensor(inputs[rank])
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        found = tensor.values()
        wrong = np.flatnonzero((found != expected) & ~(np.isnan(found) & np.isnan(expected)))
        assert wrong.size == 0, [(inputs[0][at], inputs[1][at], found[at], expected[at]) for at in wrong[:5]]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("op", [ReduceOp.MAX, ReduceOp.MIN])
def test_a_nan_is_what_comes_of_a_nan(rank: int, op: ReduceOp) -> None:
    with world() as group:
        tensor = FakeTensor(np.array([np.nan, 1.0, 2.0] if rank == 0 else [1.0, np.nan, 3.0]))
        calls.all_reduce(ME, group, tensor, tensor, op, now=True)
        assert np.isnan(tensor.values()).tolist() == [True, True, False]


@pytest.mark.ranks(3)
def test_some_ranks_on_one_device_are_refused_on_all(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.ones(3), rank // 2)
        with pytest.raises(EngineError, match="some ranks of the group share a device") as caught:
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        assert 'backend="gloo"' in str(caught.value)


@pytest.mark.ranks(2)
def test_nccl_takes_them_where_it_is_told_to(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    load()
    monkeypatch.setattr(library(), "version_number", 23000)
    with world() as group:
        tensor = FakeTensor(np.ones(3))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 2.0))
        assert "engine nccl, NCCL 2." in shim.explain()


@pytest.mark.ranks(2)
def test_what_one_rank_lacks_is_told_to_all(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> None:
        raise EngineError("NVRTC is not there")

    if rank == 1:
        monkeypatch.setattr(kernels, "compiler", lacking)
    with world() as group:
        tensor = FakeTensor(np.ones(3))
        with pytest.raises(EngineError, match="ranks share a device, and rank 1 cannot: NVRTC is not there"):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)


@pytest.mark.ranks(2)
def test_a_call_comes_after_what_is_on_the_stream(rank: int) -> None:
    """The stream of rank 1 is busy until it is let go, a while after the calls have begun."""
    with world() as group:
        stream, gate, tensor = Stream(0), Gate(), FakeTensor(np.full(3, 1.0 + rank))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 3.0))  # on another stream, for which the next call does not wait
        if rank == 1:
            gate.close(stream)
            threading.Timer(0.2, gate.open).start()
        with on_stream(stream):
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
            work = calls.all_reduce(ME, group, tensor, tensor, SUM)
            work.start()
            work.wait()
        stream.synchronize()
        check(tensor, np.full(3, 12.0))


@pytest.mark.ranks(2)
def test_calls_in_a_graph_are_refused(rank: int) -> None:
    """The ranks would wait for the device in each of them, which does nothing then."""
    with world() as group:
        stream, tensor = Stream(0), FakeTensor(np.full(3, 1.0 + rank))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        for now in (True, False):
            with on_stream(stream), stream.captured(), pytest.raises(UnsupportedError, match="in a CUDA graph"):
                calls.all_reduce(ME, group, tensor, tensor, SUM, now=now)
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 6.0))


@pytest.mark.ranks(2)
def test_what_a_late_stream_is_to_read_is_kept_for_it(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls on another stream would fill the pools anew meanwhile."""
    take = OneDeviceLink._take
    late, other, gate = Stream(0), Stream(0), Gate()

    def take_late(*arguments: Any) -> None:
        if rank == 1 and arguments[-1] == late.handle.value:
            gate.close(late)
            threading.Timer(0.2, gate.open).start()
        take(*arguments)

    with world() as group:
        tensors = [FakeTensor(np.full(3, 10.0 * turn + rank)) for turn in range(4)]
        calls.all_reduce(ME, group, tensors[0], tensors[0], SUM, now=True)
        monkeypatch.setattr(OneDeviceLink, "_take", take_late)
        for tensor, stream in zip(tensors[1:], (late, other, other), strict=True):
            with on_stream(stream):
                calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        for turn, tensor in enumerate(tensors):
            check(tensor, np.full(3, 20.0 * turn + 1))


@pytest.mark.ranks(2)
def test_a_rank_that_closes_is_not_taken_for_one_that_comes_to_the_call(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_closing, end = tmp_path / "is closing", Turns.end
    monkeypatch.setattr(Turns, "end", lambda turns: (is_closing.touch(), end(turns)))
    with world() as group:
        tensor = FakeTensor(np.full(3, 1.0 + rank))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        check(tensor, np.full(3, 3.0))
        work = calls.all_reduce(ME, group, tensor, tensor, SUM)
        if rank == 0:
            work.start()
        else:
            while not is_closing.exists():
                time.sleep(0.001)
            with pytest.raises(ShimError):
                work.wait()
            check(tensor, np.full(3, 3.0))


@pytest.mark.ranks(2)
def test_a_message_that_fails_is_not_followed_by_others(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one, which is begun before this one fails, would be received in its place."""
    with world() as group:
        tensor, both_begun = FakeTensor(np.full(3, 1.0)), np.zeros(1)
        calls.send(ME, group, tensor, 1, now=True) if rank == 0 else calls.receive(ME, group, tensor, 0, now=True)

        def failing(*_: object) -> None:
            calls.receive(ME, group, both_begun, 0, now=True, tag=1)
            raise EngineError("no memory")

        if rank == 1:
            monkeypatch.setattr(OneDeviceLink, "launch", failing)
            with pytest.raises(EngineError, match="no memory"):
                calls.receive(ME, group, tensor, 0, now=True)
            monkeypatch.undo()
            with pytest.raises(EngineError, match="a message on a device has failed: no memory"):
                calls.receive(ME, group, tensor, 0, now=True)
        else:
            works = [calls.send(ME, group, tensor, 1) for _ in range(2)]
            for work in works:
                work.start()
            calls.send(ME, group, both_begun, 1, now=True, tag=1)
            for work in works:
                with pytest.raises(EngineError, match="no memory"):
                    work.wait(5.0)


@pytest.mark.ranks(2)
def test_groups_may_be_closed_in_any_order(rank: int) -> None:
    with world():
        made = [groups.new_group(ME, (0, 1), name=name) for name in ("one", "two")]
        tensor = FakeTensor(np.ones(3))
        for group in made:
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        for group in made[:: 1 - 2 * rank]:
            groups.close_group(group)


@pytest.mark.ranks(2)
def test_a_loss_that_is_seen_while_a_group_is_closed_ends_its_links_once(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[OneDeviceLink] = []
    with world() as group:
        tensor = FakeTensor(np.ones(3))
        calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
        calls.send(ME, group, tensor, 1, now=True) if rank == 0 else calls.receive(ME, group, tensor, 0, now=True)
        links = group._of_devices["cuda"].links
        release = OneDeviceLink.release
        watches: list[threading.Thread] = []

        def destroy_while_it_is_seen(_: OneDeviceLink) -> None:
            watches.append(threading.Thread(target=links.end, args=(EngineError("a rank is lost"),)))
            watches[-1].start()
            time.sleep(0.1)

        monkeypatch.setattr(OneDeviceLink, "destroy", destroy_while_it_is_seen)
        monkeypatch.setattr(OneDeviceLink, "release", lambda link: (released.append(link), release(link)))
    for watch in watches:
        watch.join()
    assert len(released) == len(set(map(id, released))) == 2


@pytest.mark.ranks(2)
def test_nothing_is_left_of_a_group(rank: int) -> None:
    def left() -> tuple[int, int]:
        gc.collect()
        files = len(list(Path("/proc/self/fd").iterdir()))
        return Path("/proc/self/maps").read_text().count("memfd:fake_device"), files

    counts = []
    for _ in range(3):  # of which the first one opens what the process keeps
        with world() as group:
            tensor = FakeTensor(np.ones(3))
            calls.all_reduce(ME, group, tensor, tensor, SUM, now=True)
            calls.send(ME, group, tensor, 1, now=True) if rank == 0 else calls.receive(ME, group, tensor, 0, now=True)
            within = left()
            del group, tensor
        counts.append(left())
        assert counts[-1] < within
    assert counts[2] <= counts[1]
