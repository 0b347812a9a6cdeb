"""The programs in examples/ run, check themselves, and print what they promise."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from preloaded_programs import run_python

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def printed_by(example: str, ranks: int) -> str:
    ended = run_python("-m", "shim", "run", "-n", str(ranks), str(EXAMPLES / example), timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_every_frontend() -> None:
    counts = re.findall(r"(\d+) results", printed_by("every_frontend.py", 2))
    assert len(counts) == 2
    assert all(int(count) > 300 for count in counts)


def test_mixed_frameworks() -> None:
    results = re.findall(r"rank \d: (all_reduce .*)", printed_by("mixed_frameworks.py", 3))
    assert len(results) == 3
    assert len(set(results)) == 1
    first, second, third = (
        np.random.default_rng(rank).standard_normal(100_003).astype(np.float32) for rank in range(3)
    )
    assert (
        hashlib.sha256(((first + second) + third).tobytes()).hexdigest()[:12] in results[0]
    )  # in rank order, on one host


@pytest.mark.nightly
def test_the_tested_project() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "shim.testing", str(EXAMPLES / "tested_project")]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, cwd=EXAMPLES / "tested_project"
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"\b11 passed", ended.stdout)


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("shape", "They differ: [1000] on ranks 0 and 2, [900] on rank 1."),
        ("killed", "was killed by SIGKILL (kill -9, or the kernel when memory ran out)"),
    ],
)
def test_mistakes_are_told(mistake: str, told: str) -> None:
    program = [str(EXAMPLES / "mistakes" / "mistake.py"), "shim", mistake]
    ended = run_python("-m", "shim", "run", "-n", "3", *program, timeout=240)
    assert ended.returncode != 0
    assert told in ended.stderr
    assert "ended as if nothing had happened" not in ended.stdout


def test_weight_handover() -> None:
    reports = re.findall(r"rank \d, (\w+): checksum (\w+),", printed_by("weight_handover.py", 3))
    assert {framework for framework, _ in reports} == {"torch", "paddle", "mindspore"}
    assert len({checksum for _, checksum in reports}) == 1
