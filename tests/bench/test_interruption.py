"""A run that is ended leaves no process, no file and no half result."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shim.bench.results.record import file_refusal, folder_refusal, write_whole

DEADLINE = 90.0  # seconds
PEERS = ("none", pytest.param("openmpi", marks=pytest.mark.nightly))


def descendants(pid: int) -> set[int]:
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found |= {child} | descendants(child)
    return found


def shared_files(pids: set[int]) -> set[Path]:
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    return {Path(name) for name in re.findall(r"/dev/shm/\S+", maps) if Path(name).exists()}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("peers", PEERS)
def test_a_signal_ends_a_run_and_all_that_it_has_started(tmp_path: Path, number: signal.Signals, peers: str) -> None:
    folder, file = tmp_path / ("temporary_" * 9), tmp_path / "result.json"  # too long for a socket's address
    folder.mkdir()
    run = subprocess.Popen(
        [sys.executable, "-m", "shim", "bench", "--through", "engine", "--peers", peers, "--ranks", "2,3", "--collective", "all_reduce",
         "--size", "8,4MB", "--rounds", "1", "--seconds", "0.001", "--json", str(file), "--no-overlap"],
        env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + DEADLINE
    while not file.exists():
        assert run.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    pids: set[int] = set()
    while len(pids) < 3 and run.poll() is None:  # those of three ranks
        pids = descendants(run.pid)
    files = shared_files(pids)
    run.send_signal(number)
    assert run.wait(DEADLINE) == 128 + number
    assert [pid for pid in pids if is_running(pid)] == []
    assert [name for name in files if name.exists()] == []
    assert list(folder.iterdir()) == []
    assert [name.name for name in tmp_path.iterdir() if name != folder] == ["result.json"]
    assert {one["ranks"] for one in json.loads(file.read_text())["results"]} == {2}


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file, link = tmp_path / "result.json", tmp_path / "link.json"
    link.symlink_to(file)
    write_whole(file, "before")
    inode = file.stat().st_ino
    write_whole(link, "after")
    assert (file.read_text(), link.is_symlink(), file.stat().st_ino == inode) == ("after", True, False)
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "\ud800")
    assert file.read_text() == "after"
    assert set(tmp_path.iterdir()) == {file, link}


def test_what_cannot_be_written_is_told_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert file_refusal(file) is None
    assert file_refusal(Path("/dev/null")) is None
    assert folder_refusal(tmp_path / "new" / "folder") is None
    assert (tmp_path / "new" / "folder").is_dir()
    for told, path in (
        (file_refusal(tmp_path), tmp_path),
        (file_refusal(tmp_path / "nowhere" / "result.json"), tmp_path / "nowhere"),
        (file_refusal(Path("/proc/result.json")), Path("/proc/result.json")),
        (folder_refusal(file), file),
        (folder_refusal(file / "below"), file / "below"),
        (folder_refusal(Path("/proc/pictures")), Path("/proc/pictures")),
    ):
        assert told is not None
        assert str(path) in told
