"""After a rank was lost, those that are left make a group of their own, and go on."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, time
import numpy as np
import shim
import shim.frontends.torch.distributed as dist
import shim.frontends.mindspore.communication as ms
import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.paddle_3.distributed as paddle

dist.init_process_group()
mint.init_process_group()
paddle.init_parallel_env()
rank = dist.get_rank()
if rank in {lost}:
    if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
    if rank == 2:  # is told of a loss, leaves, and lives on longer than the test takes
        try:
            while True: dist.all_reduce(np.ones(3))
        except RuntimeError: dist.destroy_process_group(); mint.destroy_process_group(); paddle.destroy_process_group(); time.sleep(600)
    raise SystemExit
try:
    while True: dist.all_reduce(np.ones(3))
except RuntimeError as error:
    assert type(error).__name__.endswith("PeerLostError"), error
while len(shim.survivors()) != 4 - len({lost}): time.sleep(0.01)
left = shim.survivors()
assert left == [one for one in range(4) if one not in {lost}], left
{make}
for _ in range(10):
    total = np.full(3, float(rank))
    module.all_reduce(total, group=group)
    assert total.tolist() == [float(sum(left))] * 3, total
print("rank", rank, "went on")
"""

WAYS = {
    "shrink_group": "group = dist.shrink_group([one for one in range(4) if one not in left]); module = dist",
    "new_group": "group = dist.new_group(left, use_local_synchronization=True); module = dist",
    "create_group": 'ms.create_group("left", left); group = "left"; module = mint',
    # Without a loss, these ask the whole world.
    "torch": "dist.new_group(left); group = dist.new_group(left); module = dist",
    "mint": "mint.new_group(left); group = mint.new_group(left); module = mint",
    "paddle": "paddle.new_group(left); group = paddle.new_group(left); module = paddle",
}


def _without_rank_0(*values: object) -> object:
    """Of a network's engine: the connections of all the others go to rank 0."""
    return pytest.param(*values, marks=pytest.mark.engine("shared_memory"))


@pytest.mark.parametrize(
    ("way", "lost"),
    [
        *(("shrink_group", lost) for lost in ((1,), (1, 2, 3))),
        *(_without_rank_0("shrink_group", lost) for lost in ((0,), (0, 1))),
        _without_rank_0("new_group", (0,)),
        ("new_group", (1, 2, 3)),
        _without_rank_0("create_group", (0, 1)),
        _without_rank_0("torch", (0,)),
        ("mint", (1,)),
        _without_rank_0("paddle", (0, 1)),
    ],
    ids=str,
)
def test_survivors_go_on_in_a_group_of_their_own(way: str, lost: tuple[int, ...], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM.format(lost=lost, make=WAYS[way])))
    job = {
        **os.environ,
        "WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(secrets.randbelow(40000) + 20000),
    }
    with ExitStack() as running:
        # Started one by one: a launcher would end them all with the first.
        ranks = [
            running.enter_context(
                subprocess.Popen(
                    [sys.executable, str(program)],
                    env={**job, "RANK": str(rank), "PYTHONPATH": ":".join(sys.path)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in range(4)
        ]
        for process in ranks:
            running.callback(process.kill)
        for rank in set(range(4)) - set(lost):
            stdout, stderr = ranks[rank].communicate(timeout=300)
            assert stdout == f"rank {rank} went on\n", stderr
