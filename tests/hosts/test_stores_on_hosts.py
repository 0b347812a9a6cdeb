"""Ranks of two hosts that have a store, and no launcher: rank 0 tells the other where they meet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from namespaces import Network

ROOT = Path(__file__).parents[2]

LOCATE = """
import json, sys, time
from shim.core.job.rendezvous import locate_at
kind, rank = sys.argv[1], int(sys.argv[2])
if kind == "torch":
    from datetime import timedelta
    from torch.distributed import PrefixStore, TCPStore
    store = PrefixStore("mine", TCPStore("host1", 4000, 2, rank == 1, timedelta(seconds=30)))
elif kind == "file":
    from shim.core.job.stores import FileStore
    store = FileStore(sys.argv[3], 2, 30)
else:
    from shim.core.job.stores import TCPStore
    store = TCPStore("host1", 4000, 2, rank == 1, 30)
job = locate_at(store, rank, 2)
print(json.dumps([job.key, job.several_hosts, job.address]))
store.set(f"done {rank}", "")
store.get(f"done {1 - rank}")
time.sleep(0.5)
"""


@pytest.mark.parametrize(("kind", "interface"), [("ours", ""), ("ours", "lo"), ("torch", ""), ("file", "")])
def test_ranks_meet_at_rank_0_though_another_has_the_store(
    two_hosts: Network, kind: str, interface: str, tmp_path: Path
) -> None:
    told = os.environ | {"PYTHONPATH": str(ROOT), "SHIM_INTERFACE": interface}
    ranks = [
        host.popen(
            [sys.executable, "-c", LOCATE, kind, str(host.number), str(tmp_path / "store")],
            env=told,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in two_hosts.hosts
    ]
    done = [rank.communicate(timeout=300) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], done
    first, second = (json.loads(stdout) for stdout, _ in done)
    assert first == second
    _, several_hosts, address = first
    assert several_hosts.startswith("rank 0 is on host0 ")
    host, _, port = address.partition(":")
    assert host == ("127.0.0.1" if interface else two_hosts.hosts[0].address)
    assert int(port) > 0
