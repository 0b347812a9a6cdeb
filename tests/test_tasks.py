"""What the pages in ``docs/tasks/`` tell a user to type prints what they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from preloaded_programs import run_python

TASKS = Path(__file__).resolve().parents[1] / "docs" / "tasks"
HANGING = """\
import time

import numpy as np
import shim.frontends.torch.distributed as dist


def load_batch(rank, step):
    if rank == 1 and step == 2:
        time.sleep(3600)  # a file system that hangs
    return np.ones(1000, dtype=np.float32)


dist.init_process_group()
for step in range(5):
    gradient = load_batch(dist.get_rank(), step)
    dist.all_reduce(gradient)
    dist.barrier()
"""


def blocks(page: str, language: str = "") -> list[str]:
    """Return the blocks of code in *language* on the *page*; those of output have none."""
    text = (TASKS / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for of, block in found if of == language]


def sessions(page: str) -> Iterator[tuple[list[str], str]]:
    """Yield the commands that the *page* shows with what they print."""
    for block in blocks(page):
        if block.startswith("$ "):
            command, _, printed = block.partition("\n")
            yield shlex.split(command)[1:], printed


def told(text: str, folder: Path) -> str:
    """Return *text* without what differs from run to run."""
    text = text.replace(str(folder), "/home/me").replace(sys.executable, "python3")
    text = re.sub(r"(?m)^ *\^+ *\n", "", text)  # which Python 3.10 does not print
    text = re.sub(r"pid \d+, \w+", "pid N, S", re.sub(r"\d+\.\d s\b", "T s", text))
    return re.sub(r"pid \d+", "pid N", re.sub(r"\b[0-9a-f]{16}\b", "DIGEST", text))


def test_the_doctor_shows_who_is_missing(tmp_path: Path) -> None:
    [(command, shown)] = sessions("hanging_job")
    (tmp_path / "train.py").write_text(HANGING, encoding="utf-8")
    start = [sys.executable, "-m", "shim", "run", "-n", "3", "train.py", str(tmp_path)]  # its argument, to find it by
    job = subprocess.Popen(start, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        doctor = [sys.executable, "-m", *command, "--job", str(tmp_path)]
        until = time.monotonic() + 60
        printed = ""
        while told(printed, tmp_path) != told(shown, tmp_path) and time.monotonic() < until:
            printed = subprocess.run(doctor, capture_output=True, text=True, check=False).stdout
            printed = printed.replace(f" {tmp_path}:", ":", 1)
        assert told(printed, tmp_path) == told(shown, tmp_path)
    finally:
        job.terminate()
        job.wait(60)


def _of_any_rank(text: str) -> str:
    """Return *text* without what tells ranks apart: the first to fail comes first, and three do."""
    return re.sub(r"rank [0-2]|float32 \[[1-3], 2\]", "...", text)


@pytest.mark.frameworks
def test_pytest_shows_the_mistake_and_passes_without_it(tmp_path: Path) -> None:
    sharding, test = blocks("tests_without_gpus", "python")
    [ini] = [block for block in blocks("tests_without_gpus") if block.startswith("[pytest]")]
    [(command, shown)] = sessions("tests_without_gpus")
    padded = "    padded = torch.cat([mine, mine.new_zeros(max(counts) - len(mine), *mine.shape[1:])])\n"
    right = sharding.replace("    dist.all_gather(rows, mine)", f"{padded}    dist.all_gather(rows, padded)")
    (tmp_path / "test_sharding.py").write_text(test, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(ini + "ranks_preload = torch torch.distributed\n", encoding="utf-8")

    def run(source: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "sharding.py").write_text(source, encoding="utf-8")
        arguments = [*command[1:], "-p", "no:cacheprovider", "-p", "no:xdist"]
        return subprocess.run(
            [sys.executable, "-B", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    failed = run(sharding)
    assert failed.returncode == 1
    assert _of_any_rank(told(failed.stdout, tmp_path)).startswith(_of_any_rank(told(shown, tmp_path)))
    passed = run(right)
    assert passed.returncode == 0, passed.stdout


@pytest.mark.frameworks
def test_the_port_is_verified_and_what_is_left_is_listed(tmp_path: Path) -> None:
    [program] = blocks("torch_to_ascend", "python")
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    calls, statements = sessions("torch_to_ascend")
    for command, shown in (calls, statements):
        ended = run_python("-m", *command, cwd=tmp_path)
        # Which programs run is told on standard error.
        assert ended.stdout == re.sub(r"verify: running .*\n", "", shown)


@pytest.mark.frameworks
def test_the_first_difference_between_two_recordings_is_found(tmp_path: Path) -> None:
    [program] = blocks("two_clusters", "python")
    [(command, shown)] = sessions("two_clusters")
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    for folder, program_is_wrong in (("here", False), ("there", True)):
        arguments = f"-m shim trace run -n 2 --to {folder} --digests train.py".split()
        environment = {"BUG": "1"} if program_is_wrong else {}
        recorded = run_python(*arguments, cwd=tmp_path, env={**os.environ, **environment})
        assert recorded.returncode == 0, recorded.stderr
    ended = run_python("-m", *command, cwd=tmp_path)
    assert ended.returncode == 1
    assert told(ended.stdout, tmp_path) == told(shown, tmp_path)
