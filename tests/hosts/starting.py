"""How tests start a Python program on the hosts, and what the ranks get of the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from namespaces import Network

_ROOT = Path(__file__).parents[2]
_SCRIPTS = Path(sys.executable).parent  # where the launchers of this environment are


def environment(**changes: str) -> dict[str, str]:
    """Return the environment without what tells processes their ranks, and with *changes*."""
    others = ("SHIM_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_", "OMPI_", "PRTE_", "PMIX_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | {"PYTHONPATH": str(_ROOT), "SHIM_MEASURED": "off", "NO_COLOR": "1", "COLUMNS": "200"} | changes


def _slots(network: Network, ranks: int | Sequence[int]) -> tuple[str, int]:
    """Return the hosts with their numbers of ranks, and how many ranks there are."""
    counts = [ranks] * len(network.hosts) if isinstance(ranks, int) else ranks
    return ",".join(f"{host.name}:{count}" for host, count in zip(network.hosts, counts, strict=True)), sum(counts)


def shim_run(network: Network, ranks: int | Sequence[int], *program: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command that starts *program* with so many *ranks* on each host, or on one after the other."""
    hosts, _ = _slots(network, ranks)
    command = [sys.executable, "-m", "shim", "run", "--hosts", hosts, "--ssh", network.ssh, "-n", "1"]
    return [*command, *options, *program]


def mpirun(network: Network, ranks: int | Sequence[int], *program: str) -> list[str]:
    """Return the command of Open MPI, to be run on the first host, that does the same."""
    hosts, size = _slots(network, ranks)
    options = ["--allow-run-as-root", "--bind-to", "none", "--host", hosts, "--prtemca", "plm_ssh_agent", network.ssh]
    passed = [word for name in ("PYTHONPATH", "SHIM_MEASURED") for word in ("-x", name)]
    command = [str(_SCRIPTS / "mpirun"), *options, *passed, "-n", str(size), sys.executable, *program]
    return network.hosts[0].command(command)


def finish(command: Sequence[str], within: float, **changes: str) -> tuple[int, str]:
    """Run *command*, and return its exit status and its outputs, in one text."""
    done = subprocess.run(
        command,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=within,
        check=False,
    )
    return done.returncode, done.stdout
