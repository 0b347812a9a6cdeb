"""Messages of tensors on fake devices."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_device import FakeTensor, check, world

from shim._native import dtype_bytes
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.engines.devices import messages, watched_links
from shim.core.engines.nccl.engine import NcclEngine
from shim.core.engines.network.threads import begin_thread
from shim.core.reduce_ops import ReduceOp
from shim.errors import MismatchError, TensorError

ME = Caller("test", input="tensor", output="result")


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("now", [True, False])
def test_messages(rank: int, world_size: int, now: bool) -> None:
    with world() as group:
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        for turn in range(3):
            sent, received = FakeTensor(np.full(4, 10.0 * rank + turn), rank), FakeTensor(np.zeros(4), rank)
            if rank == 0:
                calls.send(ME, group, sent, after, tag=turn, now=now).wait()
            calls.receive(ME, group, received, None if turn == 2 else before, tag=turn, now=now).wait()
            if rank > 0:
                calls.send(ME, group, sent, after, tag=turn, now=now).wait()
            check(received, np.full(4, 10.0 * before + turn))


@pytest.mark.ranks(2)
def test_started_messages_in_both_directions(rank: int) -> None:
    with world() as group:
        sent, received = FakeTensor(np.full(50_000, 1.0 + rank), rank), FakeTensor(np.zeros(50_000), rank)
        works = [calls.send(ME, group, sent, 1 - rank), calls.receive(ME, group, received, 1 - rank)]
        for work in works:
            work.start()
        for work in works:
            work.wait()
        check(received, np.full(50_000, 2.0 - rank))
        assert works[1].source_rank() == 1 - rank
        assert works[1].is_completed()


@pytest.mark.ranks(2)
def test_a_message_that_does_not_fit_is_told_to_its_receiver(rank: int) -> None:
    with world() as group:
        for _ in range(2):
            if rank == 0:
                calls.send(ME, group, FakeTensor(np.ones(4), 0), 1, now=True)
            else:
                small = FakeTensor(np.zeros(3), 1)
                with pytest.raises(MismatchError, match="32 bytes of float64, got 24 bytes of float64"):
                    calls.receive(ME, group, small, 0, now=True)
                check(small, np.zeros(3))
        tensor = FakeTensor(np.full(4, 1.0 + rank), rank)
        if rank == 0:
            calls.send(ME, group, tensor, 1, now=True)
        else:
            calls.receive(ME, group, tensor, 0, now=True)
        check(tensor, np.full(4, 1.0))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("tags", [[0] * 8, [3, 1, 2, 0, 1, 0, 3, 2]])
def test_started_messages_keep_their_order(rank: int, tags: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with one tag are received in the order in which they were sent, although the sender's threads for the last ones begin first."""
    threads: list[tuple[str, Callable[[], None]]] = []
    monkeypatch.setattr(messages, "begin_thread", lambda *thread: threads.append(thread))
    with world() as group:
        for _ in range(5):
            tensors = [FakeTensor(np.full(4, float(number if rank == 0 else -1)), rank) for number in range(len(tags))]
            if rank == 0:
                works = [calls.send(ME, group, one, 1, tag) for one, tag in zip(tensors, tags, strict=True)]
            else:
                works = [calls.receive(ME, group, one, 0, tag) for one, tag in zip(tensors, tags, strict=True)]
            for work in works:
                work.start()
            while threads:
                begin_thread(*threads.pop(0 if rank else -1))
            for work in works:
                work.wait()
            if rank == 1:
                assert [one.values()[0] for one in tensors] == list(range(len(tags)))


@pytest.mark.ranks(2)
def test_an_empty_message_does_not_fit_a_tensor(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.zeros(3 * rank), rank)
        if rank == 0:
            calls.send(ME, group, tensor, 1, now=True)
        else:
            with pytest.raises(MismatchError, match="0 bytes of float64, got 24 bytes of float64"):
                calls.receive(ME, group, tensor, 0, now=True)


@pytest.mark.ranks(2)
def test_messages_keep_to_the_device_of_the_group(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        calls.send(ME, group, tensor, 1, now=True) if rank == 0 else calls.receive(ME, group, tensor, 0, now=True)
        with pytest.raises(
            TensorError, match=f"must be on cuda:{rank}, which this rank uses in the group, got .* cuda:5"
        ):
            calls.send(ME, group, FakeTensor(np.ones(3), 5), 1 - rank)


@pytest.mark.ranks(2)
def test_a_tensor_is_let_go_when_its_message_has_ended(rank: int) -> None:
    with world() as group:
        tensor = FakeTensor(np.full(3, 1.0 + rank), rank)
        work = calls.send(ME, group, tensor, 1) if rank == 0 else calls.receive(ME, group, tensor, 0)
        work.start()
        work.wait()
        tensor.values()
        seen = weakref.ref(tensor)
        del tensor, work
        until = watched_links.time.monotonic() + 5.0
        while seen() is not None and watched_links.time.monotonic() < until:
            gc.collect()
        assert seen() is None


@pytest.mark.ranks(2)
def test_a_message_to_a_rank_that_has_left_is_ended(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had been agreed on: the receiver has left between that and its part of the transfer."""
    monkeypatch.setattr(watched_links, "_AFTER_LEAVING", 0.2)
    with world() as group:
        tensor = FakeTensor(np.ones(3), rank)
        calls.send(ME, group, tensor, 1, now=True) if rank == 0 else calls.receive(ME, group, tensor, 0, now=True)
        engine = group._of_devices["cuda"]
        made = engine.links.of((0, 1), None)
        if rank == 0:
            with engine.links.launching(made):
                made.launch("ncclSend", *tensor_place(tensor), 1, 1, made.stream.handle)
                engine.links.end_of(made.stream.handle, tensor)  # type: ignore[arg-type]  # which it keeps
        calls.barrier(ME, group).wait()


def tensor_place(tensor: FakeTensor) -> tuple[int, int]:
    return tensor._address.value or 0, 8 * tensor.shape[0]


def test_the_header_has_room_for_every_dtypes_name() -> None:
    from shim.conformance.tables.checks import ALL_DTYPES

    assert all(len(name) <= 32 and dtype_bytes(name) for name in (*ALL_DTYPES, "float8_e4m3b11fnuz"))


@pytest.mark.ranks(2)
def test_groups_whose_first_operations_are_launched_in_another_order(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first launch of NCCL's waits for the other rank's, which may be at another group's first: neither is in the other's way."""
    launch = NcclEngine._launch_after

    def in_own_order(self: NcclEngine, move: Any, begin: Any, request: Any) -> Any:
        ((_, size),) = request.output_places
        self._of_all_ranks()  # for which the ranks wait for each other, too
        time.sleep(0.2 if (size == 4) == (rank == 0) else 0.0)
        return launch(self, move, begin, request)

    monkeypatch.setattr(NcclEngine, "_launch_after", in_own_order)
    with world():
        made = [groups.new_group(ME, [0, 1]) for _ in range(2)]
        tensors = [FakeTensor(np.full(count, 1.0 + rank, "float32"), rank) for count in (1, 2)]
        works = [calls.all_reduce(ME, group, one, one, ReduceOp.SUM) for group, one in zip(made, tensors, strict=True)]
        for work in works:
            work.start()
        for work, tensor in zip(works, tensors, strict=True):
            work.wait()
            check(tensor, np.full(len(tensor.values()), 3.0))
