"""One program started on two hosts, two ranks on each, by every launcher there is: its ranks meet and add up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from namespaces import Network

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("sum_of_ranks.py")
SCRIPTS = Path(sys.executable).parent  # where the launchers of this environment are
DEADLINE = 120.0  # seconds; the frameworks' launchers import their frameworks first
SECRET = "0123456789abcdef"

Commands = list[list[str]]
"""What is run at the same time; each says on which host."""


def shim_run(network: Network, folder: Path) -> Commands:
    command = [sys.executable, "-m", "shim", "run", "--hosts", "host0,host1", "--ssh", network.ssh, "-n", "2"]
    return [[*command, str(PROGRAM), str(folder)]]


def shim_run_by_hand(network: Network, folder: Path) -> Commands:
    command = [sys.executable, "-m", "shim", "run", "--nnodes", "2", "--master", "10.77.0.1:4000", "-n", "2"]
    return [
        host.command([*command, "--node-rank", str(host.number), str(PROGRAM), str(folder)]) for host in network.hosts
    ]


def torchrun(network: Network, folder: Path) -> Commands:
    return [
        host.command(
            [
                str(SCRIPTS / "torchrun"),
                "--nnodes=2",
                "--nproc-per-node=2",
                f"--node-rank={host.number}",
                f"--master-addr={network.hosts[0].address}",
                "--master-port=29500",
                str(PROGRAM),
                str(folder),
            ]
        )
        for host in network.hosts
    ]


def torchrun_c10d(network: Network, folder: Path) -> Commands:
    meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint={network.hosts[0].name}:29400", "--rdzv-id=this"]
    command = [str(SCRIPTS / "torchrun"), "--nnodes=2", "--nproc-per-node=2", *meeting, str(PROGRAM), str(folder)]
    return [host.command(command) for host in network.hosts]


def paddle_launch(network: Network, folder: Path) -> Commands:
    command = [sys.executable, "-m", "paddle.distributed.launch", "--nnodes=2", "--nproc_per_node=2"]
    master = f"--master={network.hosts[0].address}:6170"
    return [
        host.command(
            [
                *command,
                master,
                f"--rank={host.number}",
                f"--log_dir={folder / f'logs{host.number}'}",
                str(PROGRAM),
                str(folder),
            ]
        )
        for host in network.hosts
    ]


def msrun(network: Network, folder: Path) -> Commands:
    master = [f"--master_addr={network.hosts[0].address}", "--master_port=8118"]
    command = [str(SCRIPTS / "msrun"), "--worker_num=4", "--local_worker_num=2", "--join=True", *master]
    return [
        host.command(
            [
                *command,
                f"--node_rank={host.number}",
                f"--log_dir={folder / f'logs{host.number}'}",
                str(PROGRAM),
                str(folder),
            ]
        )
        for host in network.hosts
    ]


def mpirun(network: Network, folder: Path) -> Commands:
    hosts = ["--allow-run-as-root", "--host", "host0:2,host1:2", "--prtemca", "plm_ssh_agent", network.ssh]
    passed = [word for name in ("PYTHONPATH", "SHIM_SECRET", "SHIM_ENGINE") for word in ("-x", name)]
    command = [str(SCRIPTS / "mpirun"), *hosts, *passed, "-n", "4", sys.executable, str(PROGRAM), str(folder)]
    return [network.hosts[0].command(command)]


@pytest.mark.parametrize(
    ("commands", "name", "engine"),
    [
        (shim_run, "shim run", "c10d"),
        pytest.param(shim_run_by_hand, "shim run", "c10d", marks=pytest.mark.nightly),
        pytest.param(torchrun, "torchrun", "c10d", marks=pytest.mark.nightly),
        pytest.param(torchrun_c10d, "torchrun", "c10d", marks=pytest.mark.nightly),
        pytest.param(paddle_launch, "paddle.distributed.launch", "c10d", marks=pytest.mark.nightly),
        pytest.param(msrun, "msrun", "c10d", marks=pytest.mark.nightly),
        pytest.param(mpirun, "Open MPI", "mpi", marks=pytest.mark.nightly),
    ],
)
def test_ranks_on_two_hosts_meet(
    two_hosts: Network, commands: Callable[[Network, Path], Commands], name: str, engine: str, tmp_path: Path
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MASTER_", "SHIM_"))}
    told = {"PYTHONPATH": str(ROOT), "SHIM_SECRET": SECRET, "SHIM_ENGINE": engine}
    started = [
        subprocess.Popen(
            command,
            env=kept | told,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands(two_hosts, tmp_path)
    ]
    outputs = [process.communicate(timeout=DEADLINE)[0] for process in started]
    assert [process.returncode for process in started] == [0] * len(started), "\n".join(outputs)
    seen = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("rank*.json")}
    assert sorted(seen) == [f"rank{rank}.json" for rank in range(4)]
    assert len({rank["key"] for rank in seen.values()}) == 1
    for rank in range(4):
        mine = seen[f"rank{rank}.json"]
        del mine["key"]
        assert mine == {"launcher": name, "several": True, "host": f"host{rank // 2}", "sum": [6.0, 10.0, 14.0]}
    for host in two_hosts.hosts:
        host.assert_empty()
