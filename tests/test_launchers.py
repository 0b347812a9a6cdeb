"""One program started by every launcher there is, and what each of its ranks saw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shim.conformance.examples.adapting import free_ports
from shim.launch.identity import launcher_variables, rank_variables

ROOT = Path(__file__).parents[1]
PROGRAM = Path(__file__).with_name("launched_program.py")
SCRIPTS = Path(sys.executable).parent  # where the launchers of this environment are
DEADLINE = 120.0  # seconds; the frameworks' launchers import their frameworks first

SPAWN = f"""
import sys
sys.path.insert(0, {str(PROGRAM.parent)!r})
from launched_program import main
if __name__ == "__main__":
    from paddle.distributed import spawn
    spawn(main, args=(sys.argv[1],), nprocs=int(sys.argv[2]), backend="gloo")
"""


def shim_run(size: int, folder: Path) -> list[str]:
    return [sys.executable, "-m", "shim", "run", "-n", str(size), str(PROGRAM), str(folder)]


def torchrun(size: int, folder: Path) -> list[str]:
    return [
        str(SCRIPTS / "torchrun"),
        f"--nproc-per-node={size}",
        f"--master-port={free_port()}",
        str(PROGRAM),
        str(folder),
    ]


def torchrun_standalone(size: int, folder: Path) -> list[str]:
    return [str(SCRIPTS / "torchrun"), "--standalone", f"--nproc-per-node={size}", str(PROGRAM), str(folder)]


def paddle_launch(size: int, folder: Path) -> list[str]:
    options = [f"--nproc_per_node={size}", f"--log_dir={folder / 'logs'}"]
    return [sys.executable, "-m", "paddle.distributed.launch", *options, str(PROGRAM), str(folder)]


def paddle_spawn(size: int, folder: Path) -> list[str]:
    (folder / "spawn.py").write_text(SPAWN)
    return [sys.executable, str(folder / "spawn.py"), str(folder), str(size)]


def msrun(size: int, folder: Path) -> list[str]:
    options = [f"--worker_num={size}", f"--local_worker_num={size}", f"--master_port={free_port()}", "--join=True"]
    return [str(SCRIPTS / "msrun"), *options, f"--log_dir={folder / 'logs'}", str(PROGRAM), str(folder)]


def mpirun(size: int, folder: Path) -> list[str]:
    options = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    return [str(SCRIPTS / "mpirun"), *options, "-n", str(size), sys.executable, str(PROGRAM), str(folder)]


def by_hand(size: int, folder: Path) -> list[str]:
    address = f"WORLD_SIZE={size} MASTER_ADDR=127.0.0.1 MASTER_PORT={free_port()}"
    starts = [f"RANK={rank} {address} '{sys.executable}' '{PROGRAM}' '{folder}' &" for rank in range(size)]
    return ["sh", "-c", "\n".join([*starts, "wait"])]


def free_port() -> int:
    return free_ports(1)[0]


def launch(command: list[str], around: Mapping[str, str] | None = None) -> None:
    """Run a launcher to its end, with the variables of the one *around* it. Fails with all it wrote unless its status is 0."""
    unwanted = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted} | {**(around or {})}
    environment |= {"PYTHONPATH": str(ROOT), "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stdout


def in_shim_run(rank: int, size: int) -> dict[str, str]:
    """Return what a rank of `shim run` sees, which starts the launcher."""
    endpoints = [f"127.0.0.1:{4000 + other}" for other in range(size)]
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "5000"}
    return rank_variables(rank, size, "5eed.0") | launcher_variables(rank, size, "5eed", endpoints) | address


ALONE: dict[str, str] = {}
IN_SHIM_RUN = in_shim_run(1, 2)


@pytest.mark.parametrize(
    ("command", "size", "name", "around"),
    [
        (shim_run, 1, "shim run", ALONE),
        (shim_run, 3, "shim run", IN_SHIM_RUN),
        (torchrun, 2, "torchrun", ALONE),
        (torchrun_standalone, 2, "torchrun", IN_SHIM_RUN),
        (paddle_launch, 2, "paddle.distributed.launch", IN_SHIM_RUN),
        # Paddle refuses it in a rank of several.
        pytest.param(paddle_spawn, 2, "paddle.distributed.launch", in_shim_run(0, 1), marks=pytest.mark.nightly),
        (msrun, 2, "msrun", IN_SHIM_RUN),
        (mpirun, 3, "Open MPI", IN_SHIM_RUN),
        (by_hand, 2, "variables set by hand", ALONE),
    ],
)
def test_every_rank_finds_its_place(
    command: Callable[[int, Path], list[str]], size: int, name: str, around: dict[str, str], tmp_path: Path
) -> None:
    launch(command(size, tmp_path), around)
    seen = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("rank*.json")}
    assert seen == {
        f"rank{rank}.json": {
            "rank": rank,
            "size": size,
            "launcher": name,
            "ranks": [rank] * 3,
            "all_reduce": [sum(100 * other + place for other in range(size)) for place in (1, 2)],
            "all_gather": [100 * other + place for other in range(size) for place in (1, 2)],
            "all_to_all": [10 * other + rank for other in range(size)],
        }
        for rank in range(size)
    }


def test_msrun_s_scheduler_ends_without_having_been_a_rank(tmp_path: Path) -> None:
    launch(msrun(2, tmp_path))
    assert (tmp_path / "logs" / "scheduler.log").read_text() == "before the world\n"


def test_two_jobs_at_once_do_not_meet(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "another"]
    for folder in folders:
        folder.mkdir()
    jobs = " & ".join(" ".join(f"'{word}'" for word in mpirun(2, folder)) for folder in folders)
    launch(["sh", "-c", f"{jobs} & wait"])
    for folder in folders:
        assert sorted(path.name for path in folder.glob("*.json")) == ["rank0.json", "rank1.json"]
        assert json.loads((folder / "rank1.json").read_text())["all_reduce"] == [102, 104]
