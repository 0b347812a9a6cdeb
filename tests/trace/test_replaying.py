"""Recorded calls, made again: a mismatch and a hang come back, whatever the program was."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from made_up_recordings import WORLD, all_reduce, tensors
from real_dumps import REAL
from recorded_programs import EVERYTHING, HANG, MISMATCH

from shim.core.reduce_ops import ReduceOp
from shim.errors import TensorError
from shim.trace.calls import Shape, Tensors
from shim.trace.flight_recorder import write_dumps
from shim.trace.reading import read_recording
from shim.trace.replaying.plan import MadeUp, steps_of
from shim.trace.replaying.rank import call_from


def replay(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shim", "trace", "replay", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_program_is_made_again(ranks: int, recorded: Callable[..., Path]) -> None:
    folder = recorded(EVERYTHING, ranks)
    done = replay(folder)
    count = len(read_recording(folder).calls) - ranks  # all but the agreement on the world's name
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{count} calls of {ranks} ranks were made again in \S+ s, which took \S+ s\n", done.stdout)


@pytest.mark.parametrize("ranks", [1, 2])
def test_fewer_ranks_make_their_part(ranks: int, recorded: Callable[..., Path]) -> None:
    done = replay(recorded(EVERYTHING, 3), "-n", str(ranks), "--no-pauses")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(
        rf"of {ranks} ranks? were made again .*; left out: rank.*s? {ranks} to 2 with \d+ calls", done.stdout
    )


def test_a_mismatch_on_eight_ranks_is_the_same_again(recorded: Callable[..., Path]) -> None:
    folder = recorded(MISMATCH, 8)
    failures = {call.failure for call in read_recording(folder).calls if call.failure}
    [text] = {failure.text.replace("  <- this rank", "") for failure in failures}
    done = replay(folder)
    assert done.returncode == 0
    assert f"rank 0, 1, 2, 3, 4, 5, 6, 7: MismatchError, as recorded: {text}\n" in done.stdout
    assert re.search(r"rank 5: all_reduce\(float64 \[5\], SUM\), at .*/program\d+\.py:\d+ in step\n", done.stdout)


def test_what_ctrl_c_ended_hangs_again(recorded: Callable[..., Path]) -> None:
    program = """
    if rank == 1:
        time.sleep(1.5)
    else:
        import _thread, threading
        threading.Timer(0.3, _thread.interrupt_main).start()
        try:
            dist.all_reduce(np.zeros(3))
        except KeyboardInterrupt:
            pass
    """
    done = replay(recorded(program, 2), "--timeout", "0.7")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rank 0: CollectiveTimeoutError in all_reduce(" in done.stdout


def test_a_hang_hangs_again(recorded: Callable[..., Path]) -> None:
    done = replay(recorded(HANG, 2), "--timeout", "0.7")
    assert done.returncode == 0
    assert re.search(
        r"rank 0: CollectiveTimeoutError in all_reduce\(float64 \[3\], SUM\).*not arrived: rank 1", done.stdout
    )


LOST = "if rank == 1: os.kill(os.getpid(), 9)\ndist.barrier()"
REFUSED = """
for wrong in ("no tensor", np.zeros(4)):
    try:
        dist.all_reduce(wrong if rank == 0 else np.zeros(3))
    except Exception:
        pass
    try:
        dist.broadcast(np.zeros(4), src=7 if rank else 0)
    except Exception:
        pass
dist.barrier()
"""


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (LOST, "rank 0: PeerLostError in barrier.*was killed by SIGKILL"),
        (REFUSED, "rank 1: refused: .*rank 7 is not in group 'world'"),
    ],
)
def test_other_failures_come_back(program: str, text: str, recorded: Callable[..., Path]) -> None:
    done = replay(recorded(program, 2))
    assert done.returncode == 0
    assert re.search(text, done.stdout)


def test_a_call_that_ends_otherwise_is_told(recorded: Callable[..., Path], tmp_path: Path) -> None:
    """Without the rank that disagreed, the mismatch is gone."""
    done = replay(recorded(MISMATCH, 8), "-n", "2")
    assert done.returncode == 1
    assert re.search(
        r"rank 0 differs at all_reduce.*in the recording it raised MismatchError; in the replay it ended", done.stdout
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-n", "3"], "has 2 ranks, and -n asks for 3\nGive -n at most 2."),
        (["--run", "4"], "has 1 run, got run 4\nRuns are counted from 1."),
    ],
)
def test_what_cannot_be_replayed_is_refused(options: list[str], text: str, recorded: Callable[..., Path]) -> None:
    done = replay(recorded(HANG, 2), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_pauses_are_kept_unless_told_otherwise(recorded: Callable[..., Path]) -> None:
    folder = recorded(
        "for _ in range(3):\n    dist.barrier()\n    time.sleep(0.5)\n", 2
    )  # a busy machine takes 0.4 s without them
    kept, dropped = (
        float(re.search(r"again in (\S+) s", replay(folder, *options).stdout)[1]) for options in ([], ["--no-pauses"])
    )  # type: ignore[index]
    assert dropped < 0.95 < kept


def test_calls_come_from_the_recorded_line() -> None:
    seen = call_from("/a/b c.py:120 in step", partial(sys._getframe, 0))
    assert (seen.f_code.co_filename, seen.f_lineno, seen.f_code.co_name) == ("/a/b c.py", 120, "step")
    assert seen.f_globals["__name__"] == "__main__"
    assert call_from("", partial(sys._getframe, 0)).f_globals["__name__"] == "shim.core"


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", "float8_e4m3fn", "complex128", "uint64"])
def test_made_up_tensors_have_the_recorded_dtype_and_shape(dtype: str) -> None:
    shape = all_reduce(outputs=tensors((2, 0), (3, 5), dtype=dtype, is_list=True))
    made = MadeUp(2).tensors(shape, "outputs")
    assert [(str(one.dtype), one.shape) for one in made] == [(dtype, (2, 0)), (dtype, (3, 5))]
    assert not any(np.any(one.astype(np.float64)) for one in made if dtype != "complex128")


def test_parts_of_absent_ranks_are_cut() -> None:
    shape = Shape(WORLD, "all_to_all", tensors((4, 3)), tensors((6,), (6,), is_list=True), output_splits=(1, 3))
    assert [one.shape for one in MadeUp(1).tensors(shape, "outputs")] == [(3,)]
    assert [one.shape for one in MadeUp(1).tensors(shape, "inputs")] == [(6,)]


def test_what_could_not_be_read_cannot_be_made() -> None:
    with pytest.raises(TensorError, match="no tensor"):
        MadeUp(1).tensors(all_reduce(inputs=Tensors(False, (), "str", "it is no tensor")), "inputs")


def test_steps_go_in_the_order_of_the_program(recorded: Callable[..., Path]) -> None:
    rank = read_recording(recorded(EVERYTHING, 3)).ranks[0]
    steps = steps_of(rank, 3)
    assert [step.group.name for step in steps if step.group] == ["world", "group_1"]
    times = [step.time for step in steps if step.call]
    assert times == sorted(times)
    [start, wait] = [k for k, step in enumerate(steps) if step.call and step.what in ("start", "wait")][:2]
    assert (steps[start].call, wait) == (steps[wait].call, start + 1)
    assert not any(step.call.shape.is_message for step in steps_of(rank, 1) if step.call)
    assert ReduceOp[steps[start].call.shape.op] == ReduceOp.MAX  # type: ignore[union-attr]


def test_dumps_of_a_cluster_are_replayed(tmp_path: Path) -> None:
    """Rank 1 has never made the second call: rank 0 hangs in it again."""
    for rank in range(2):
        dump = {**REAL, "entries": REAL["entries"][: 2 - rank]}
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump))
    done = replay(tmp_path, "--timeout", "0.7")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(
        r"^rank 0: CollectiveTimeoutError in all_gather\(bfloat16 .*, at /job/train.py:42 in train_step: .*",
        done.stdout,
    )
    assert re.search(r"3 calls of 2 ranks were made again", done.stdout)


def test_dumps_that_a_replay_of_all_collectives_gives_are_replayed(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    job = read_recording(recorded(EVERYTHING, 3))
    write_dumps(job, tmp_path / "rank_")
    done = replay(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"{len(job.calls)} calls of 3 ranks were made again", done.stdout)
