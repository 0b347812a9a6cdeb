"""The program that ``test_conformance_across`` starts: ``conformance_across.py gloo|mpi ARGUMENTS`` runs `shim conformance` with ranks on two hosts.

mpirun starts the ranks in turns on the hosts. Their groups are served by the hierarchical engine, over the library that is given.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import mpi_seats
from namespaces import make_hosts

from shim.cli import main
from shim.conformance.examples.running import runner

_PORT = 29600
runner._DEADLINE = 120.0  # the ranks of each example import its framework anew


def run(library: str) -> None:
    with make_hosts(2) as network:
        first = network.hosts[0]
        hosts = ",".join(f"{host.name}:8" for host in network.hosts)
        options = ["--allow-run-as-root", "--enable-recovery", "--bind-to", "none", "--map-by", "node:OVERSUBSCRIBE"]
        mpirun = [str(Path(sys.executable).with_name("mpirun")), *options, "--host", hosts]
        os.environ["SHIM_TEST_MPIRUN"] = shlex.join(first.command([*mpirun, "--prtemca", "plm_ssh_agent", network.ssh]))
        os.environ |= {"SHIM_ENGINE": "hierarchical", "SHIM_ACROSS": library, "SHIM_SECRET": os.urandom(16).hex()}
        os.environ["SHIM_INTERFACE"] = first.interface
        if library == "gloo":
            os.environ["SHIM_TEST_MEETING"] = f"{first.address}:{_PORT}"
        mpi_seats.install()
        main()


if __name__ == "__main__":
    run(sys.argv.pop(1))
