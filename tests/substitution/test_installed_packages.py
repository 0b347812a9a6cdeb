"""Installed packages that communicate through torch themselves share the world of a substituted program, whoever starts it."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest
from preloaded_programs import run_python

LIBRARY = """
import torch
import torch.distributed as dist


def mean(value):  # as torchmetrics has it: alone where there is no world
    if not dist.is_initialized():
        return value
    total = torch.tensor([value])
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()


def start():
    if not dist.is_initialized():
        dist.init_process_group()


def group():
    return type(dist.group.WORLD).__name__


def train(value):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    (model(torch.full((1, 2), value))).sum().backward()
    return model.module.weight.grad.tolist()
"""
PROGRAM = """
import os
import sys
import torch
import torch.distributed as dist
import library


def work(rank, size=2, port=None):
    if port is not None:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(size))
    if sys.argv[1] == "library":
        library.start()
        assert dist.is_initialized()
    else:
        dist.init_process_group("gloo")
    mine = torch.ones(1)
    dist.all_reduce(mine)
    assert dist.all_reduce.__module__.startswith("shim."), dist.all_reduce.__module__
    library.start()
    told = [library.mean(dist.get_rank() + 1.0), library.group(), library.train(dist.get_rank() + 1.0), mine.item()]
    part = dist.new_group([0, 1])
    dist.all_reduce(mine, group=part)
    print(" ".join(map(str, [*told, mine.item()])) + "\\n", end="", flush=True)  # at once, beside the other rank's
    dist.destroy_process_group()
    assert library.mean(7.0) == 7.0


if __name__ == "__main__":
    if sys.argv[2] == "here":
        work(int(os.environ.get("RANK", 0)))
    else:
        import torch.multiprocessing as mp

        mp.start_processes(work, args=(2, sys.argv[3]), nprocs=2, start_method=sys.argv[2])
"""
EXPECTED = "1.5 EngineGroup [[1.5, 1.5]] 2.0 4.0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program" / "x").mkdir(parents=True)
    (tmp_path / "program" / "program.py").write_text(PROGRAM)
    (tmp_path / "installed" / "library-1.dist-info").mkdir(parents=True)  # as a folder with packages has it
    (tmp_path / "installed" / "library.py").write_text(LIBRARY)
    return tmp_path


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def lines_of(folder: Path, *arguments: str) -> list[str]:
    env = {**os.environ, "PYTHONPATH": str(folder / "installed")}
    done = run_python(*arguments, cwd=folder / "program", env=env)
    assert done.returncode == 0, done.stderr
    return [re.sub(r"^\[\d\] ", "", line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("first", ["program", pytest.param("library", marks=pytest.mark.nightly)])
def test_the_world_is_one_whoever_starts_it(folder: Path, first: str) -> None:
    started = ("-m", "shim", "run", "-n", "2", "--as-installed", "program.py", first, "here")
    assert lines_of(folder, *started) == [EXPECTED] * 2


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.nightly), "fork"])
def test_in_processes_that_the_program_starts(folder: Path, method: str) -> None:
    assert lines_of(folder, "-m", "shim.substitution", "program.py", "library", method, free_port()) == [EXPECTED] * 2


def test_without_substitution_it_is_gloo(folder: Path) -> None:
    (folder / "program" / "program.py").write_text(PROGRAM.replace("    assert dist.all_reduce.__module__", "    #"))
    told = lines_of(folder, "program.py", "program", "fork", free_port())
    assert told == [EXPECTED.replace("EngineGroup", "ProcessGroup")] * 2
