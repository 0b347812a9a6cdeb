"""``shim trace`` as a user meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_programs import EVERYTHING, HANG, MISMATCH, SETTING
from typer.testing import CliRunner, Result

from shim.cli import _app

SLOW = """
for _ in range(4):
    if rank == 2:
        time.sleep(0.2)
    dist.all_reduce(np.zeros(1000))
    dist.barrier()
"""


def trace(*arguments: str | Path) -> Result:
    return CliRunner().invoke(_app, ["trace", *map(str, arguments)])


def launch(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shim", "trace", "run", *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHIM_TRACE")}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_a_slow_rank_is_named(recorded: Callable[..., Path]) -> None:
    done = trace("show", recorded(SLOW, 4))
    assert done.exit_code == 0
    assert re.search(r": 32 calls of 4 ranks in \d\.\d+ s\n", done.output)
    assert re.search(r"\nall_reduce +world +4 +0\.128 +\d+\.\d+ +\d+\.\d+ +2 \(\d+% of wait\)\n", done.output)
    found = re.search(r"The others waited for rank 2 most: (\d+\.\d+) ms, (\d+)% of all waiting\.", done.output)
    assert found is not None
    assert float(found[1]) > 4 * 3 * 100  # of 200 ms each, as a busy machine makes the others late too
    assert int(found[2]) > 50


def test_the_summary_as_json(recorded: Callable[..., Path]) -> None:
    told = json.loads(trace("show", recorded(MISMATCH, 8), "--json").stdout)
    assert (told["size"], told["missing_ranks"]) == (8, [])
    assert [one["collective"] for one in told["operations"]] == ["all_reduce"]
    assert {one["error"]["class"] for one in told["failures"]} == {"MismatchError"}
    assert [one["rank"] for one in told["failures"]] == list(range(8))


def test_failures_and_hangs_are_shown(recorded: Callable[..., Path]) -> None:
    done = trace("show", recorded(MISMATCH, 8))
    assert re.search(r"Rank 5: MismatchError in all_reduce\(float64 \[5\], SUM\), at .*:\d+ in step\n", done.output)
    done = trace("show", recorded(HANG, 2))
    assert re.search(r"Rank 0 has not ended all_reduce\(float64 \[3\], SUM\), at .*; not there: rank 1\n", done.output)


def test_internal_calls_are_shown_where_asked_for(recorded: Callable[..., Path]) -> None:
    folder = recorded(HANG, 2)
    assert "broadcast" not in trace("show", folder).output
    assert "broadcast" in trace("show", folder, "--internal").output


def test_other_formats_are_written(recorded: Callable[..., Path], tmp_path: Path) -> None:
    folder = recorded(EVERYTHING, 2)
    done = trace("show", folder, "--perfetto", tmp_path / "a.json", "--flight-recorder", tmp_path / "dumps" / "rank_")
    assert done.exit_code == 0
    assert "ui.perfetto.dev" in done.output
    assert f"`python -m torch.distributed.flight_recorder.fr_trace {tmp_path}/dumps -p rank_` reads them" in done.output
    assert json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert trace("show", tmp_path / "dumps").exit_code == 0
    refused = trace("show", folder, "--perfetto", "/dev/null/file")
    assert (refused.exit_code, refused.output) == (2, "shim trace: /dev/null/file cannot be written: Not a directory\n")


def test_missing_ranks_are_told(recorded: Callable[..., Path], tmp_path: Path) -> None:
    for file in recorded(EVERYTHING, 3).glob("rank[02]*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert "Not recorded: rank 1 of 3." in trace("show", tmp_path).output
    replayed = trace("replay", tmp_path)
    assert (replayed.exit_code, replayed.output) == (
        2,
        f"shim trace: {tmp_path} has no file of rank 1\nGive -n at most 1.\n",
    )


def test_two_recordings_are_compared(recorded: Callable[..., Path]) -> None:
    same = trace("diff", recorded(EVERYTHING, 2, True), recorded(EVERYTHING, 2))
    assert (same.exit_code, same.output) == (0, "56 calls on 2 ranks are equal, 0 with digests\n")
    other = trace("diff", recorded(EVERYTHING, 2), recorded(EVERYTHING.replace("np.float32", "np.float64"), 2))
    assert other.exit_code == 1
    assert re.search(
        r"^rank 0, call 1: dtype float32 \| float64\n  A all_reduce\(float32 .*program\d+\.py:\d+ in step\n.*\n.*\n  B all_reduce\(float64 ",
        other.output,
    )
    assert other.output.endswith("0 calls on 2 ranks are equal, 0 with digests; 2 of 2 ranks differ\n")


def test_recordings_without_calls_are_not_equal(recorded: Callable[..., Path]) -> None:
    folder = recorded("pass", 2)
    done = trace("diff", folder, folder)
    assert (done.exit_code, done.output) == (2, f"shim trace: {folder} and {folder} have no calls to compare\n")


def test_a_file_whose_end_is_missing_is_told(recorded: Callable[..., Path], tmp_path: Path) -> None:
    assert "The end is missing" not in trace("show", recorded(EVERYTHING, 2)).output
    assert "The end is missing" not in trace("show", recorded(HANG, 2)).output  # its ranks were killed
    for file in recorded(EVERYTHING, 2).iterdir():
        data = file.read_bytes()
        (tmp_path / file.name).write_bytes(data[: len(data) - 200 * file.name.startswith("rank1")])
    done = trace("show", tmp_path)
    assert f"The end is missing of {tmp_path}/rank1.shimtrace: calls and times are not complete." in done.output
    assert json.loads(trace("show", tmp_path, "--json").stdout)["cut_ranks"] == [1]


@pytest.mark.parametrize("option", ["--json", "--internal"])
def test_options_of_the_summary_are_refused_beside_files(option: str, tmp_path: Path) -> None:
    done = trace("show", tmp_path, "--page", tmp_path / "page.html", option)
    assert done.exit_code == 2
    assert f"{option} is for the summary, which --page does not print" in done.output


@pytest.mark.parametrize("command", [["show"], ["diff", "."], ["replay"]])
def test_a_folder_without_a_recording_is_refused(command: list[str], tmp_path: Path) -> None:
    for folder, text in ((tmp_path, "has no recording"), (tmp_path / "x", "is no folder")):
        done = trace(*command, folder) if command[0] != "diff" else trace("diff", folder, folder)
        assert done.exit_code == 2
        assert done.output.startswith(
            f"shim trace: {folder} {text}\n`shim trace run -n 2 --to {folder} SCRIPT` makes one."
        )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(SETTING + "dist.barrier()\nraise SystemExit(3 * rank)\n")
    return file


def test_a_program_is_run_and_recorded(script: Path) -> None:
    options = ("--digests", "--max-restarts", "1", "--log-dir", "logs", "--env", "MINE=1")
    done = launch("-n", "2", *options, script.name, cwd=script.parent)
    assert done.returncode == 3  # that of the program
    assert "shim trace: 2 of 2 ranks are recorded in shim-trace; `shim trace show shim-trace` shows it" in done.stderr
    folder = script.parent / "shim-trace"
    assert re.search(r": 2 calls of 2 ranks in .*; run 2 of 2\n", trace("show", folder).output)
    assert (script.parent / "logs" / "rank1.stdout").exists()
    again = launch("-n", "2", script.name, cwd=script.parent)
    assert again.returncode == 2
    told = " ".join(again.stderr.replace("│", " ").split())
    hint = "name another folder with --to FOLDER, or remove this one: rm -r shim-trace"
    assert f"shim-trace has a recording already; {hint}" in told


def test_several_runs_in_one_folder_are_kept_apart(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", "shim", "run", "-n", "2", str(script)], env={**os.environ, "SHIM_TRACE": str(folder)}, capture_output=True, timeout=300
        )  # fmt: skip
    assert {file.name for file in folder.iterdir()} == {
        "rank0.shimtrace", "rank1.shimtrace", "rank0.2.shimtrace", "rank1.2.shimtrace",
    }  # fmt: skip
    assert "; run 2 of 2\n" in trace("show", folder).output
    assert "; run 1 of 2\n" in trace("show", folder, "--run", "1").output
    refused = trace("show", folder, "--run", "3")
    assert (refused.exit_code, refused.output) == (
        2,
        f"shim trace: {folder} has 2 runs, got run 3\nRuns are counted from 1.\n",
    )


def test_a_program_without_a_world_records_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("print('hello')")
    done = launch("-n", "1", "--to", "x", "plain.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "nothing is recorded, as no rank has initialised shim's world" in done.stderr


def test_a_file_is_no_folder_for_a_recording(script: Path) -> None:
    done = launch("-n", "1", "--to", script.name, script.name, cwd=script.parent)
    assert done.returncode == 2
    assert "train.py is a file; name a folder" in " ".join(done.stderr.replace("│", " ").split())
