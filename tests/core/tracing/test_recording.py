"""What is recorded of the calls of ranks, and that what is recorded is on the disk at once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import shim
from shim.core import calls, groups, objects
from shim.core.callers import Caller
from shim.core.collectives import COLLECTIVES
from shim.core.engines.layer import CallLayer
from shim.core.reduce_ops import ReduceOp
from shim.core.tracing.layout import CUT, MAGIC, State, records
from shim.errors import ArgumentError, CollectiveTimeoutError, MismatchError, TensorError
from shim.trace.calls import Call, RankRecording
from shim.trace.reading import read_recording

ME = Caller("test")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return tmp_path / "recording"


def _record(folder: Path, patch: pytest.MonkeyPatch, digests: str = "0") -> groups.ProcessGroup:
    patch.setenv("SHIM_TRACE", str(folder))
    patch.setenv("SHIM_TRACE_DIGESTS", digests)
    return groups.enter_world(ME, "test", timeout=20.0)


@contextmanager
def _recorded_world(folder: Path, patch: pytest.MonkeyPatch, digests: str = "0") -> Iterator[groups.ProcessGroup]:
    try:
        yield _record(folder, patch, digests)
    finally:
        groups.close_world()


def _mine(folder: Path, rank: int) -> RankRecording:
    return read_recording(folder).ranks[rank]


def _users_calls(folder: Path, rank: int) -> list[Call]:
    return [call for call in _mine(folder, rank).calls if not call.shape.is_internal]


@pytest.mark.ranks(1, 2, 3)
def test_every_collective_is_recorded_with_what_it_was_called_with(
    rank: int, world_size: int, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _recorded_world(recorded, monkeypatch) as world:
        one, every = np.zeros((2, 3), np.float32), np.zeros((2 * world_size, 3), np.float32)
        last = world_size - 1
        calls.broadcast(ME, world, one, last, now=True)
        calls.all_reduce(ME, world, one, one, ReduceOp.MAX, now=True)
        calls.reduce(ME, world, one, one, ReduceOp.SUM, last, now=True)
        calls.all_gather(ME, world, every, one, now=True)
        calls.gather(ME, world, every, one, last, now=True)
        calls.scatter(ME, world, one, every, last, now=True)
        calls.reduce_scatter(ME, world, one, every, ReduceOp.SUM, now=True)
        calls.all_to_all(ME, world, every, every.copy(), [2] * world_size, [2] * world_size, now=True)
        calls.barrier(ME, world, now=True)
        found = _users_calls(recorded, rank)
        assert [call.shape.collective for call in found] == [row.name for row in COLLECTIVES if not row.point_to_point]
        assert all(call.state == State.ENDED and call.end is not None and call.begin <= call.end for call in found)
        assert all(
            call.shape.source.startswith(__file__) and " in test_every_coll" in call.shape.source for call in found
        )
        lines = [int(re.search(r":(\d+) in ", call.shape.source)[1]) for call in found]  # type: ignore[index]
        assert lines == list(range(lines[0], lines[0] + len(lines)))
        shapes = {call.shape.collective: call.shape for call in found}
        root = rank == last
        assert (shapes["broadcast"].root, shapes["broadcast"].parts("inputs")) == (last, (6,) if root else ())
        assert (shapes["all_reduce"].op, shapes["all_reduce"].dtype) == ("MAX", "float32")
        assert shapes["reduce"].parts("outputs") == ((6,) if root else ())
        assert shapes["all_gather"].parts("outputs") == (6,) * world_size
        assert shapes["gather"].parts("outputs") == ((6,) * world_size if root else ())
        assert shapes["scatter"].parts("inputs") == ((6,) * world_size if root else ())
        assert shapes["reduce_scatter"].parts("inputs") == (6,) * world_size
        assert shapes["all_to_all"].output_splits == (2,) * world_size
        assert shapes["all_to_all"].parts("inputs") == (6,) * world_size
        assert shapes["all_to_all"].bytes == 24 * world_size
        assert f"recorded in {recorded}/rank{rank}.shimtrace" in shim.explain()
        calls.barrier(ME, world, now=True)
        calls.barrier(ME, world, now=True)
        assert len({call.shape.source for call in _users_calls(recorded, rank)[-3:]}) == 3


@pytest.mark.ranks(2)
@pytest.mark.parametrize("in_background", [False, True])
def test_messages_are_recorded_with_who_has_sent(
    rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch, in_background: bool
) -> None:
    with _recorded_world(recorded, monkeypatch) as world:
        pair = groups.new_group(ME, [1, 0])
        tensor = np.full(4, rank + 1, np.int16)
        if rank == 0:
            calls.send(ME, pair, tensor, 0, 7, now=not in_background).wait()
        else:
            calls.receive(ME, pair, tensor, None, 7, now=not in_background).wait()
        assert world.size == 2
        [call] = _users_calls(recorded, rank)
        assert (call.shape.collective, call.shape.tag) == (("send", "receive")[rank], 7)
        assert (call.shape.peer, call.source_rank) == ((1, None), (None, 0))[rank]
        assert call.shape.group.ranks == (1, 0)
        assert call.shape.is_async is in_background
        assert call.state == State.ENDED


@pytest.mark.ranks(2)
def test_an_asynchronous_call_is_recorded_as_it_goes(
    rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _recorded_world(recorded, monkeypatch, "1") as world:
        tensor = np.full(3, rank + 1.0)
        work = calls.all_reduce(ME, world, tensor, tensor, ReduceOp.SUM)
        assert _users_calls(recorded, rank)[0].state == State.PREPARED
        begun = work.start()
        assert begun is work
        if rank == 0:
            assert _users_calls(recorded, rank)[0].state == State.STARTED
        work.wait()
        [call] = _users_calls(recorded, rank)
        assert call.state == State.ENDED
        assert call.waited is not None
        assert call.end is not None
        assert call.begin <= call.waited <= call.end
        assert tensor.tolist() == [3.0] * 3
        again = calls.all_reduce(ME, world, tensor, tensor, ReduceOp.SUM).start()
        calls.barrier(ME, world, now=True)
        assert again is not None
        assert again.is_completed()
        before, seen, _ = _users_calls(recorded, rank)
        assert (seen.state, seen.waited) == (State.ENDED, None)
        assert seen.input_digest == before.output_digest != before.input_digest  # what was written went in again


@pytest.mark.ranks(2)
def test_works_that_begin_together_are_handed_to_the_engine(
    rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shim.core.work import Batch

    with _recorded_world(recorded, monkeypatch) as world:
        tensor = np.full(2, rank + 1.0)
        Batch([calls.all_reduce(ME, world, tensor, tensor, ReduceOp.SUM) for _ in range(2)]).wait()
        assert tensor.tolist() == [3.0, 3.0]  # each read the tensor before the other wrote
        assert [call.state for call in _users_calls(recorded, rank)] == [State.ENDED] * 2


@pytest.mark.ranks(2)
def test_lists_and_one_tensor_of_the_same_elements_have_one_digest(
    rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _recorded_world(recorded, monkeypatch, "1") as world:
        mine = np.arange(6.0).reshape(2, 3) + 10 * rank
        parts, whole = [np.zeros((2, 3)), np.zeros((2, 3))], np.zeros((4, 3))
        strided = np.zeros((3, 4)).T
        calls.all_gather(ME, world, parts, mine, now=True)
        calls.all_gather(ME, world, whole, np.asfortranarray(mine), now=True)
        calls.all_gather(ME, world, strided, mine, now=True)
        mine[0, 0] += 1
        calls.all_gather(ME, world, whole, mine, now=True)
        found = _users_calls(recorded, rank)
        assert len({call.output_digest for call in found[:3]}) == 1
        assert len({call.input_digest for call in found[:3]}) == 1
        assert found[3].input_digest != found[2].input_digest
        assert found[3].output_digest != found[2].output_digest


@pytest.mark.ranks(2)
def test_what_shim_agrees_on_by_itself_is_marked(rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _recorded_world(recorded, monkeypatch) as world:
        groups.new_group(ME)
        assert objects.all_gather(ME, world, {"rank": rank}) == [{"rank": 0}, {"rank": 1}]
        calls.barrier(ME, world, now=True, before="a test")
        found = _mine(recorded, rank).calls
        assert [call.shape.collective for call in found] == [
            *("broadcast", "barrier", "all_gather"), *("barrier", "all_gather", "all_gather"), "barrier",
        ]  # fmt: skip
        [users] = [call for call in found if not call.shape.is_internal]
        assert users.shape.is_of_objects
        assert users is found[5]


@pytest.mark.ranks(2)
def test_errors_are_recorded(rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _recorded_world(recorded, monkeypatch) as world:
        with pytest.raises(MismatchError):
            calls.all_reduce(ME, world, np.zeros(2 + rank), np.zeros(2 + rank), ReduceOp.SUM, now=True)
        with pytest.raises((ArgumentError, TensorError, MismatchError)):
            calls.broadcast(ME, world, [np.zeros(2), "no tensor"][1 - rank], 0, now=True)
        with pytest.raises((ArgumentError, TensorError, MismatchError)):
            calls.all_gather(ME, world, np.zeros(2), np.zeros(1), [[1], [1]] if rank else None, now=True)  # type: ignore[list-item]
        mismatch, refused, *_ = _users_calls(recorded, rank)
        assert mismatch.state == refused.state == State.FAILED
        assert mismatch.failure is not None
        assert mismatch.failure.kind == "MismatchError"
        assert "[2] on rank 0, [3] on rank 1" in mismatch.failure.text
        if rank == 0:
            assert refused.shape.inputs is not None
            assert refused.shape.inputs.unreadable


@pytest.mark.ranks(2)
def test_a_wait_that_was_too_short_is_no_end(rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _recorded_world(recorded, monkeypatch) as world:
        tensor = np.ones(1)
        if rank == 0:
            work = calls.receive(ME, world, tensor, 1)
            with pytest.raises(CollectiveTimeoutError):
                work.wait(0.01)
            assert _users_calls(recorded, rank)[0].state == State.WAITING
            calls.barrier(ME, world, now=True)
            work.wait()
            assert _users_calls(recorded, rank)[0].state == State.ENDED
        else:
            calls.barrier(ME, world, now=True)
            calls.send(ME, world, tensor, 0, now=True)


def test_every_row_is_recorded() -> None:
    assert all(row.name in vars(CallLayer) for row in COLLECTIVES)


HANGS = """
import os, sys, threading
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group(rank=0, world_size=1)
for _ in range(20_000):  # more than a chunk of the file
    dist.barrier()
if "fork" in sys.argv:
    told, tells = os.pipe()
    if os.fork() == 0:
        os.read(told, 1)
        try:
            dist.barrier()
        except Exception:
            os._exit(7)
    dist.barrier()  # which the child's would overwrite
    os.write(tells, b".")
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
    raise SystemExit
threading.Timer(0.3, print, ["here"], {"flush": True}).start()
dist.recv(np.zeros(2))
"""


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "SHIM_TRACE": str(folder)}


def test_what_a_killed_process_was_in_is_on_the_disk(recorded: Path) -> None:
    command = [sys.executable, "-c", HANGS]
    with subprocess.Popen(command, env=_environment(recorded), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGKILL)
    found = read_recording(recorded).ranks[0].calls
    assert len(found) >= 20_000
    assert [(call.shape.collective, call.state, call.end) for call in found[-1:]] == [("receive", State.RUNNING, None)]
    assert (recorded / "rank0.shimtrace").stat().st_size % (1 << 20) == 0


def test_a_forked_child_leaves_its_parents_file_alone(recorded: Path) -> None:
    with warnings.catch_warnings():
        done = subprocess.run([sys.executable, "-c", HANGS, "fork"], env=_environment(recorded), timeout=300)
    assert done.returncode == 0
    found = read_recording(recorded).ranks[0].calls
    assert len(found) == 20_001
    assert all(call.state == State.ENDED for call in found)
    assert 0 < (recorded / "rank0.shimtrace").stat().st_size - 64 * len(found) < 4000  # it was cut to its end


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (
            {"SHIM_TRACE": "/dev/null/folder"},
            "SHIM_TRACE must name a folder in which files can be made, got /dev/null/folder",
        ),
        ({"SHIM_TRACE_DIGESTS": "yes"}, "SHIM_TRACE_DIGESTS must be 0, 1, or another key of 64 bits, got 'yes'"),
    ],
)
def test_wrong_variables_are_refused(
    variables: dict[str, str], text: str, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shim.core.tracing.recorder import recorder_of

    for name, value in {"SHIM_TRACE": str(recorded), **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match=text):
        recorder_of(0, 1, "key")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh",
        MAGIC,
        MAGIC + bytes(64),
        MAGIC + b"\x07\0\0\0\0\0\0\0",
        MAGIC + b"\x01\0\0\0\xff\0\0\0{}",
        MAGIC + b"\x02\0\0\0" + bytes(60),
    ],
)
def test_other_files_are_told_from_recordings(data: bytes, recorded: Path) -> None:
    recorded.mkdir()
    (recorded / "rank0.shimtrace").write_bytes(data)
    with pytest.raises(ArgumentError, match=r"rank0\.shimtrace cannot be read: .*\n.*Record it again"):
        read_recording(recorded)


def test_a_file_that_was_cut_off_is_read_up_to_there(recorded: Path) -> None:
    subprocess.run([sys.executable, "-c", HANGS, "fork"], env=_environment(recorded), timeout=300, check=True)
    data = (recorded / "rank0.shimtrace").read_bytes()
    whole = list(records(data))
    for cut in (1, 60, 65, 150, len(data) - 100):
        *rest, last = records(data[:-cut])
        if last != CUT:
            rest.append(last)
        assert (last == CUT) is (whole[-1] not in rest), f"{cut} bytes short"
        assert rest == whole[: len(rest)]
        assert len(whole) - (cut > 65) >= len(rest) > len(whole) - 2 - cut // 32


@pytest.mark.ranks(2)
def test_a_rank_may_record_alone(rank: int, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIM_TRACE", raising=False)
    try:
        world = groups.enter_world(ME, "test", timeout=20.0) if rank == 0 else _record(recorded, monkeypatch)
        other = groups.new_group(ME)
        tensor = np.full(2, rank + 1.0)
        calls.all_reduce(ME, other, tensor, tensor, ReduceOp.SUM, now=True)
        calls.barrier(ME, world, now=True)
        assert tensor.tolist() == [3.0, 3.0]
        assert ("recorded in" in shim.explain()) is (rank == 1)
        assert list(read_recording(recorded).ranks) == [1]
    finally:
        groups.close_world()


FULL = """
import resource
import shim.frontends.torch.distributed as dist
dist.init_process_group(rank=0, world_size=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for _ in range(20_000):
    dist.barrier()
print("done")
"""


def test_a_program_goes_on_where_there_is_no_room_for_its_recording(recorded: Path) -> None:
    command = [sys.executable, "-c", FULL]
    done = subprocess.run(command, env=_environment(recorded), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "shim: the recording cannot grow, and goes no further: File too large\n"
    found = read_recording(recorded).ranks[0]
    assert 16_000 < len(found.calls) < 16_384
    assert not found.has_ended
