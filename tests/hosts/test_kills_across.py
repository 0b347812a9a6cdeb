"""DDP over two hosts whose ranks are killed again and again, and started again: each step is done once, by all, and nobody waits in vain."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from namespaces import Network
from starting import finish, shim_run

pytest.importorskip("torch", reason="gloo is torch's")

PROGRAM = str(Path(__file__).with_name("kills_across.py"))
KILLS = int(os.environ.get("SHIM_TEST_KILLS", "5"))
DEADLINE = 60.0 + 30.0 * KILLS  # seconds; a new process of torch takes five of them


@pytest.mark.nightly
def test_every_step_is_done_whoever_is_killed(two_hosts: Network, tmp_path: Path) -> None:
    command = shim_run(two_hosts, 2, PROGRAM, str(KILLS), "1", str(tmp_path), options=["--replace", str(2 * KILLS)])
    status, output = finish(command, DEADLINE)
    assert status == 0, output
    assert output.count("was killed by SIGKILL; it is started again") == KILLS + KILLS // 5, output
    seen = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(4)]
    assert max(one["furthest"] for one in seen) < 1e-12, seen
    for host in two_hosts.hosts:
        host.assert_empty()
    assert all(seconds < 30.0 for one in seen for seconds in one["back after"]), seen
