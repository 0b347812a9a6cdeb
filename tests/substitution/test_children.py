"""Processes that a substituted program starts are substituted too, whichever way they are started."""

from __future__ import annotations

from pathlib import Path

import pytest
from preloaded_programs import run_python

# What the program and each of its processes print is where their torch.distributed comes from.
PROGRAM = """
import multiprocessing
import sys
import torch.distributed as dist
from beside import broadcast


def child(depth):
    print(depth, dist.all_reduce.__module__, broadcast.__module__, flush=True)
    if depth:
        run(depth - 1)


def run(depth):
    process = multiprocessing.get_context(sys.argv[1]).Process(target=child, args=(depth,))
    process.start()
    process.join()


if __name__ == "__main__":
    run(1)
"""
FRONTEND = "shim.frontends.torch.distributed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("from torch.distributed import broadcast\n")
    return tmp_path


@pytest.mark.parametrize(
    ("program", "method"),
    [
        (["program.py"], "spawn"),
        (["program.py"], "fork"),
        (["program.py"], "forkserver"),
        pytest.param(["-m", "program"], "spawn", marks=pytest.mark.nightly),
    ],
)
def test_children_and_theirs_have_the_views(folder: Path, program: list[str], method: str) -> None:
    done = run_python("-m", "shim.substitution", *program, method, cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["1", "0"], done.stderr
    assert all(name.startswith(FRONTEND) for line in lines for name in line[1:]), lines


def test_without_substitution_nothing_is_replaced(folder: Path) -> None:
    done = run_python("program.py", "fork", cwd=folder)
    assert "shim" not in done.stdout
    assert done.stdout.startswith("1 torch.distributed")
