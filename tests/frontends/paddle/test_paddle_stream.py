"""The functions of ``paddle.distributed.stream``, whose orders of arguments are their own, in both versions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from paddle_world import KINDS, VERSIONS, world
from rank_numbers import check, make, numbers
from wrong_calls import assert_refused, named

from shim.errors import MismatchError
from shim.frontends.paddle_2.distributed.communication import stream as stream_2
from shim.frontends.paddle_2.distributed.communication.stream.reduce_scatter import _reduce_scatter_base as base_2
from shim.frontends.paddle_3.distributed.communication import stream as stream_3
from shim.frontends.paddle_3.distributed.communication.reduce import is_avg_reduce_op_supported
from shim.frontends.paddle_3.distributed.communication.stream.reduce_scatter import _reduce_scatter_base as base_3

WAYS = [(True, False), (True, True), (False, False)]  # sync_op and use_calc_stream


def assert_task(task: Any, sync_op: bool) -> None:
    assert task.is_sync() is sync_op
    assert task.wait() is True
    assert task.is_completed()


def test_the_functions_by_their_other_path() -> None:
    for dist, stream in ((VERSIONS["2"], stream_2), (VERSIONS["3"], stream_3)):
        assert len(stream.__all__) == 11
        for name in stream.__all__:
            assert getattr(stream, name) is getattr(dist.stream, name)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("sync_op", "calc"), WAYS)
def test_what_has_no_root(rank: int, world_size: int, version: str, kind: str, sync_op: bool, calc: bool) -> None:
    with world(version) as dist:
        tensor, ways = make(kind, numbers(rank, 4)), {"sync_op": sync_op, "use_calc_stream": calc}
        assert_task(dist.stream.all_reduce(tensor, dist.ReduceOp.MAX, None, sync_op, calc), sync_op)
        check(kind, tensor, np.max([numbers(other, 4) for other in range(world_size)], axis=0))

        outputs: list[Any] = []
        assert_task(dist.stream.all_gather(outputs, make(kind, numbers(rank, 4)), **ways), sync_op)
        check(kind, outputs[2], numbers(2, 4))
        whole = make(kind, np.zeros((world_size, 4)))
        assert_task(dist.stream.all_gather(whole, make(kind, numbers(rank, 4)), None, sync_op, calc), sync_op)
        check(kind, whole, np.stack([numbers(other, 4) for other in range(world_size)]))

        inputs = np.stack([numbers(10 * rank + other, 2) for other in range(world_size)])
        mine = np.stack([numbers(10 * other + rank, 2) for other in range(world_size)])
        output = make(kind, np.zeros(2))
        parts = [make(kind, part.copy()) for part in inputs]
        assert_task(dist.stream.reduce_scatter(output, parts, dist.ReduceOp.SUM, None, sync_op, calc), sync_op)
        check(kind, output, mine.sum(axis=0))
        assert_task(dist.stream.reduce_scatter(output, make(kind, inputs), dist.ReduceOp.MIN, **ways), sync_op)
        check(kind, output, mine.min(axis=0))

        outputs = []
        assert_task(dist.stream.alltoall(outputs, parts, None, sync_op, calc), sync_op)
        for seen, expected in zip(outputs, mine, strict=True):
            check(kind, seen, expected)
        whole = make(kind, np.zeros((world_size, 2)))
        assert_task(dist.stream.alltoall(whole, make(kind, inputs), **ways), sync_op)
        check(kind, whole, mine)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("sync_op", "calc"), WAYS)
def test_reduce_scatter_base(rank: int, world_size: int, version: str, sync_op: bool, calc: bool) -> None:
    base = {"2": base_2, "3": base_3}[version]
    with world(version) as dist:
        output = np.zeros(3)
        assert_task(base(output, numbers(rank, 3 * world_size), dist.ReduceOp.MIN, None, sync_op, calc), sync_op)
        everything = [numbers(other, 3 * world_size) for other in range(world_size)]
        check("numpy", output, np.min(everything, axis=0)[3 * rank : 3 * rank + 3])
        if version == "3":
            assert is_avg_reduce_op_supported()
            base(output, numbers(rank, 3 * world_size), dist.ReduceOp.AVG)
            check("numpy", output, np.mean(everything, axis=0)[3 * rank : 3 * rank + 3])
        else:
            with pytest.raises(ValueError, match="op"):
                base(output, numbers(rank, 3 * world_size), dist.ReduceOp.AVG)
        for kind, wrong in (
            (ValueError, lambda: base(output, [output, output])),
            (RuntimeError, lambda: base(output, numbers(rank, 6), sync_op=False, use_calc_stream=True)),
        ):
            with pytest.raises(kind):
                wrong()
        dist.barrier()


def rows_between(sender: int, receiver: int) -> int:
    """Different for every pair, and nothing from a rank to itself."""
    return 0 if sender == receiver else 1 + sender + 2 * receiver


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("sync_op", "calc"), WAYS)
def test_alltoall_single_takes_the_outputs_sizes_first(
    rank: int, world_size: int, version: str, sync_op: bool, calc: bool
) -> None:
    with world(version) as dist:
        out_sizes = [rows_between(other, rank) for other in range(world_size)]
        in_sizes = [rows_between(rank, other) for other in range(world_size)]
        output = np.zeros((sum(out_sizes), 2))
        source = np.concatenate([numbers(rank + 7 * other, (rows, 2)) for other, rows in enumerate(in_sizes)])
        assert_task(dist.stream.alltoall_single(output, source, out_sizes, in_sizes, None, sync_op, calc), sync_op)
        expected = [numbers(other + 7 * rank, (rows, 2)) for other, rows in enumerate(out_sizes)]
        check("numpy", output, np.concatenate(expected))
        output = np.zeros((world_size, 3))
        dist.stream.alltoall_single(output, numbers(rank, (world_size, 3)))
        check("numpy", output, np.stack([numbers(other, (world_size, 3))[rank] for other in range(world_size)]))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("sync_op", "calc"), WAYS)
def test_what_has_a_root(rank: int, world_size: int, version: str, kind: str, sync_op: bool, calc: bool) -> None:
    with world(version) as dist:
        ways = {"sync_op": sync_op, "use_calc_stream": calc}
        for root in range(world_size):
            tensor = make(kind, numbers(rank, 4))
            assert_task(dist.stream.broadcast(tensor, root, None, sync_op, calc), sync_op)
            check(kind, tensor, numbers(root, 4))

            gathered: list[Any] | None = [] if rank == root else None
            assert_task(dist.stream.gather(make(kind, numbers(rank, 4)), gathered, root, **ways), sync_op)
            for other, seen in enumerate(gathered or []):
                check(kind, seen, numbers(other, 4))

            parts = np.stack([numbers(root + other, 4) for other in range(world_size)])
            given = [make(kind, part.copy()) for part in parts] if rank == root else None
            tensor = make(kind, np.zeros(4))
            assert_task(dist.stream.scatter(tensor, given, root, None, sync_op, calc), sync_op)
            check(kind, tensor, parts[rank])
            tensor = make(kind, np.zeros(4))
            assert_task(dist.stream.scatter(tensor, make(kind, parts) if rank == root else None, root, **ways), sync_op)
            check(kind, tensor, parts[rank])

            tensor = make(kind, numbers(rank, 4))
            assert_task(dist.stream.reduce(tensor, root, dist.ReduceOp.PROD, None, sync_op, calc), sync_op)
            product = np.prod([numbers(other, 4) for other in range(world_size)], axis=0)
            check(kind, tensor, product if rank == root else numbers(rank, 4))
        tensor = make(kind, numbers(rank, 4))
        dist.stream.reduce(tensor)  # to rank 0
        check(kind, tensor, sum(numbers(other, 4) for other in range(world_size)) if rank == 0 else numbers(rank, 4))


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("sync_op", "calc"), WAYS)
def test_send_and_recv(rank: int, version: str, sync_op: bool, calc: bool) -> None:
    with world(version) as dist:
        if rank == 0:
            assert_task(dist.stream.send(numbers(0, 3), 1, None, sync_op, calc), sync_op)
        else:
            received = np.zeros(3)
            assert_task(dist.stream.recv(received, 0, None, sync_op, calc), sync_op)
            check("numpy", received, numbers(0, 3))


CALLS: dict[str, Any] = {
    "all_gather": lambda stream, *ways: stream.all_gather([], np.ones(2), *ways),
    "all_reduce": lambda stream, *ways: stream.all_reduce(np.ones(2), 0, *ways),
    "alltoall": lambda stream, *ways: stream.alltoall([], [np.ones(2)] * 2, *ways),
    "alltoall_single": lambda stream, *ways: stream.alltoall_single(np.ones(2), np.ones(2), None, None, *ways),
    "broadcast": lambda stream, *ways: stream.broadcast(np.ones(2), 0, *ways),
    "gather": lambda stream, *ways: stream.gather(np.ones(2), [], 0, *ways),
    "recv": lambda stream, *ways: stream.recv(np.ones(2), 0, *ways),
    "reduce": lambda stream, *ways: stream.reduce(np.ones(2), 0, 0, *ways),
    "reduce_scatter": lambda stream, *ways: stream.reduce_scatter(np.ones(2), [np.ones(2)] * 2, 0, *ways),
    "scatter": lambda stream, *ways: stream.scatter(np.ones(2), [np.ones(2)] * 2, 0, *ways),
    "send": lambda stream, *ways: stream.send(np.ones(2), 0, *ways),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_calculation_stream_is_for_synchronous_calls(rank: int, version: str) -> None:
    with world(version) as dist:
        for name, call in CALLS.items():
            with named(name):
                if rank == 1:
                    words = "use_calc_stream must be False"
                    assert f"stream.{name}:" in assert_refused(
                        RuntimeError, words, call, dist.stream, None, False, True
                    )
                elif name not in ("send", "recv"):
                    with pytest.raises(MismatchError, match="use_calc_stream"):
                        call(dist.stream, None, False, False).wait()
                dist.barrier()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_outside_a_group(rank: int, version: str) -> None:
    with world(version) as dist:
        group = dist.new_group([0])
        for name, call in CALLS.items() if rank == 1 else ():
            for ways in ((True, False), (False, True)):
                with named(name):
                    if name == "all_gather":
                        assert_refused(RuntimeError, "does not belong", call, dist.stream, group, *ways)
                        continue
                    with pytest.warns(UserWarning, match="does not belong") as caught:
                        assert call(dist.stream, group, *ways) is None
                    assert caught[0].filename == __file__
        dist.barrier()


@pytest.mark.ranks(2)
def test_what_waits_for_the_ranks_waits_for_the_device_too(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import paddle

    waits: list[str] = []
    with world() as dist:
        tensor = paddle.ones([2])
        monkeypatch.setattr("paddle.device.synchronize", lambda: waits.append("all"))
        dist.barrier()
        dist.wait(tensor)
        assert not waits
        monkeypatch.setattr("paddle.framework._current_expected_place", lambda: paddle.CUDAPlace)
        dist.barrier()
        dist.wait(tensor)
        assert waits == ["all", "all"]
