"""Dumps that torch's own fr_trace reads, and dumps of torch that this reads."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up_recordings import recording
from preloaded_programs import run_python
from real_dumps import GLOO, REAL
from recorded_programs import EVERYTHING, HANG, MISMATCH

from shim.core.tracing.layout import State
from shim.errors import ArgumentError
from shim.trace.calls import MESSAGES
from shim.trace.differences import compare
from shim.trace.flight_recorder import is_dump_folder, read_dumps, write_dumps
from shim.trace.reading import read_recording
from shim.trace.summary import summarize

ANALYSE = """
import pickle, sys
from torch.distributed.flight_recorder import fr_trace
fr_trace.main(sys.argv[1:])
"""


def analysed(folder: Path, tmp_path: Path) -> tuple[subprocess.CompletedProcess[str], Any]:
    """Return what fr_trace says of the recording in *folder*, and its database as lists."""
    write_dumps(read_recording(folder), tmp_path / "dumps" / "rank_")
    program = tmp_path / "analyse.py"
    program.write_text(
        ANALYSE + "_, db = pickle.load(open(sys.argv[-1], 'rb'))\n"
        "import json; print('DB', json.dumps([[{name: str(value) for name, value in one._asdict().items()} for one in part] for part in db]))\n"
    )
    answer = tmp_path / "db"
    done = run_python(str(program), str(tmp_path / "dumps"), "-p", "rank_", "-o", str(answer))
    found = re.search(r"^DB (.*)$", done.stdout, re.MULTILINE)
    return done, json.loads(found[1]) if found else None


@pytest.mark.frameworks
@pytest.mark.parametrize("ranks", [2, 3])
def test_torchs_analyzer_matches_every_call(ranks: int, recorded: Callable[..., Path], tmp_path: Path) -> None:
    folder = recorded(EVERYTHING, ranks)
    done, database = analysed(folder, tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stderr + done.stdout.partition("DB ")[0]
    assert "ismatch" not in said
    assert "Not all ranks" not in said
    _, _, _, collectives, calls = database
    assert len(calls) == len(read_recording(folder).calls)
    assert {one["pass_check"] for one in collectives} == {"True"}


@pytest.mark.frameworks
def test_torchs_analyzer_finds_the_mismatch(recorded: Callable[..., Path], tmp_path: Path) -> None:
    done, _ = analysed(recorded(MISMATCH, 8), tmp_path)
    said = done.stdout + done.stderr
    assert re.search(r"Culprit rank 5; .*'\[\[4\]\]' does not match found input sizes: '\[\[5\]\]'", said), said
    assert re.search(r"step at .*program\d+\.py:\d+", said), said


@pytest.mark.frameworks
def test_torchs_analyzer_finds_who_is_missing(recorded: Callable[..., Path], tmp_path: Path) -> None:
    done, _ = analysed(recorded(HANG, 2), tmp_path)
    said = done.stdout + done.stderr
    assert "Not all ranks joining collective" in said
    assert "missing ranks: {1}" in said
    assert "collective state: started" in said


def test_what_is_written_is_read_again(recorded: Callable[..., Path], tmp_path: Path) -> None:
    job = read_recording(recorded(EVERYTHING, 3))
    write_dumps(job, tmp_path / "nccl_trace_rank_")
    assert is_dump_folder(tmp_path)
    again = read_dumps(tmp_path)
    assert (again.size, list(again.ranks)) == (3, [0, 1, 2])
    assert [call.shape.collective for call in again.calls] == [call.shape.collective for call in job.calls]
    assert [call.shape.source for call in again.calls] == [call.shape.source for call in job.calls]
    assert [call.shape.dtype for call in again.calls] == [call.shape.dtype for call in job.calls]
    assert [(call.begin, call.end) for call in again.calls] == [(call.begin, call.end) for call in job.calls]
    of_groups = [call.shape.group.ranks for call in again.calls if call.shape.collective not in MESSAGES]
    assert of_groups == [call.shape.group.ranks for call in job.calls if not call.shape.is_message]
    assert compare(again, read_dumps(tmp_path)).differences == []
    assert not summarize(again).unfinished


@pytest.mark.parametrize("as_json", [False, True])
def test_dumps_of_a_real_job_are_read(as_json: bool, tmp_path: Path) -> None:
    for rank in range(2):
        dump = {**REAL, "entries": REAL["entries"][: 2 - rank]}
        name = f"nccl_trace_rank_{rank}" + ".json" * as_json
        (tmp_path / name).write_bytes(json.dumps(dump).encode() if as_json else pickle.dumps(dump))
    job = read_dumps(tmp_path)
    [whole, open_call] = job.ranks[0].calls
    assert whole.line() == "all_reduce(bfloat16 [1024, 8]), at /job/train.py:41 in train_step"
    assert (whole.state, open_call.state, open_call.end) == (State.ENDED, State.RUNNING, None)
    assert open_call.shape.parts("outputs") == (8192, 8192)
    assert [(call.rank, absent) for call, absent in summarize(job).unfinished] == [(0, (1,))]


def test_dumps_of_gloo_are_read(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps(GLOO))
    job = read_dumps(tmp_path)
    assert [call.state for call in job.ranks[1].calls] == [State.ENDED, State.STARTED]
    assert job.ranks[1].calls[0].line() == "all_gather(float32 [2, 4] <- float32 [4])"
    assert job.ranks[1].calls[0].shape.group.ranks == (0, 1)
    assert job.size == 2


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.getpid, ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (pickle.dumps({"entries": Evil()}), "it refers to posix.getpid, and a dump has plain values only"),
        (pickle.dumps({"entries": []}), "has no 'pg_config'"),
        (pickle.dumps([1]), "cannot be read as a Flight Recorder dump"),
        (b"{", "cannot be read as a Flight Recorder dump"),
        (pickle.dumps(REAL)[:200], "cannot be read as a Flight Recorder dump"),
    ],
)
def test_other_files_are_refused(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(data)
    with pytest.raises(ArgumentError, match=re.escape(text)):
        read_dumps(tmp_path)


def test_a_folder_of_other_files_is_no_folder_of_dumps(tmp_path: Path) -> None:
    assert not is_dump_folder(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    assert not is_dump_folder(tmp_path)
    assert write_dumps(recording(size=1), tmp_path / "rank_") == [tmp_path / "rank_0"]
    assert is_dump_folder(tmp_path)
