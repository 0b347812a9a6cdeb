"""What a rehearsed step moves and takes: figures that can be worked out by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shim.errors import ArgumentError
from shim.rehearsal.clusters import Link, use_of_bytes
from shim.rehearsal.costs import Step

PROGRAM = """
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
for _ in range(3):
    work = dist.all_reduce(np.ones(1 << 17), async_op=True)  # 1 MB
    dist.all_to_all_single(np.ones(size << 12), np.ones(size << 12))
    work.wait()
    if rank == 0: dist.send(np.ones(1 << 17), size - 1)
    if rank == size - 1: dist.recv(np.ones(1 << 17), 0)
    dist.broadcast(np.ones(1 << 17), 0)
"""


def rehearsed(folder: Path, *options: str) -> dict[str, Any]:
    path = folder / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-m", "shim", "rehearse", "-n", "8", "--json", *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found["costs"]


def test_costs_of_a_step(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    links = ("--inside", "1GB/s,10us", "--across", "0.8Gbit/s,100us")
    costs = rehearsed(tmp_path, "--cluster", "4x2", *links, "--page", str(page))
    size, part = float(1 << 20), float(1 << 15)
    assert costs["steps"]["1"] == [3, 3]
    rows = {row["operation"]: row for row in costs["operations"]}
    assert (rows["all_reduce"]["inside"], rows["all_reduce"]["across"]) == (size, 2 * 3 / 4 / 2 * size)
    assert rows["all_reduce"]["seconds"] == pytest.approx(2 * 10e-6 + size / 1e9 + 2 * 2 * 100e-6 + 0.75 * size / 1e8)
    assert (rows["all_to_all"]["inside"], rows["all_to_all"]["across"]) == (part, 6 * part)
    assert (rows["broadcast"]["inside"], rows["broadcast"]["across"]) == (size, 2 * size)
    assert (rows["send"]["inside"], rows["send"]["across"]) == (0, size)
    pairs = {(one, other): moved for one, other, moved in costs["between_hosts"]}
    exchanged = 4 * part
    assert pairs[2, 3] == pytest.approx(1.5 * size + exchanged)
    assert pairs[3, 0] == pytest.approx(1.5 * size + exchanged)
    assert pairs[3, 1] == exchanged
    assert pairs[0, 3] == pytest.approx(exchanged + size + size)
    assert '"hosts":[[0,1,' in page.read_text()


def test_what_is_waited_for_at_once_is_not_in_the_background(tmp_path: Path) -> None:
    rows = rehearsed(tmp_path, "--cluster", "4x2")["operations"]
    of = {row["operation"]: row for row in rows}
    assert of["all_reduce"]["background"] > 0  # all_to_all is called meanwhile
    assert of["broadcast"]["background"] == 0


@pytest.mark.parametrize(
    ("names", "step"),
    [
        ("ABABAB", (0, 2, 3)),
        ("xxABCABCABCy", (2, 3, 3)),
        ("AAAABBBB", (0, 8, 1)),  # layers, and not steps
        ("ABCD", (0, 4, 1)),
        ("", (0, 0, 1)),
    ],
)
def test_steps_are_what_repeats(names: str, step: tuple[int, int, int]) -> None:
    found = Step.among(names)
    assert (found.first, found.length, found.times) == step


def test_links() -> None:
    for text, rate, latency in (("400GB/s,5us", 400e9, 5e-6), ("200Mbit/s, 1.5ms", 25e6, 1.5e-3)):
        link = Link.of(text)
        assert (link.rate, link.latency) == pytest.approx((rate, latency))
    for text in ("", "0GB/s,5us", "5us,400GB/s", "400GB,5us"):
        with pytest.raises(ArgumentError, match="a link is a rate and a latency"):
            Link.of(text)


def test_one_host_sends_nothing_across() -> None:
    for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "gather", "barrier"):
        use = use_of_bytes(collective, 1024, 8, 1, 8)
        assert (use.across, use.messages) == (0, 0)
        assert use.steps > 0
