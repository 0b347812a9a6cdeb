"""``torch.multiprocessing.spawn``: ported for Paddle, where the function asks for its rank; left where that cannot be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from shim.port import Plan, port_source

HEAD = "import torch.distributed as dist\nimport torch.multiprocessing as mp\n"
PORTED = "import shim.frontends.paddle_3.distributed as dist\nimport torch.multiprocessing as mp\n"

CASES = [
    (
        "def f(rank, x):\n    use(rank, x)\nmp.spawn(f, args=(1,), nprocs=2)\n",
        "def f(x):\n    rank = dist.get_rank()\n    use(rank, x)\ndist.spawn(f, args=(1,), nprocs=2)\n",
    ),
    (
        "def f(rank: int) -> None:\n    '''Doc.'''\n    use(rank)\nmp.spawn(fn=f)\n",
        "def f() -> None:\n    '''Doc.'''\n    rank = dist.get_rank()\n    use(rank)\ndist.spawn(func=f, nprocs=1)\n",
    ),
    (
        "def f(rank, *rest, key=1):\n    if rank:\n        pass\nmp.spawn(f, (1, 2), 2, start_method='fork')\n",
        "def f(*rest, key=1):\n    rank = dist.get_rank()\n    if rank:\n        pass\ndist.spawn(f, (1, 2), 2, start_method='fork')\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_the_function_asks_for_its_rank(before: str, after: str) -> None:
    ported = port_source(HEAD + before, Plan("torch", "paddle_3"))
    ast.parse(ported.text)
    assert ported.text == PORTED + after
    assert not ported.entries


LEFT = [
    "def f(rank): pass\nmp.spawn(f)\n",
    "def f(rank):\n    pass\nf(0)\nmp.spawn(f)\n",
    "def f(rank=0):\n    pass\nmp.spawn(f)\n",
    "def f(rank, /):\n    pass\nmp.spawn(f)\n",
    "def f():\n    pass\nmp.spawn(f)\n",
    "@wrapped\ndef f(rank):\n    pass\nmp.spawn(f)\n",
    "from elsewhere import f\nmp.spawn(f)\n",
    "mp.spawn(functools.partial(f, 1))\n",
]


@pytest.mark.parametrize("source", LEFT)
def test_a_function_that_cannot_ask_is_left(source: str) -> None:
    ported = port_source(HEAD + source, Plan("torch", "paddle_3"))
    assert ported.text == PORTED + source
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "spawned-function")]


@pytest.mark.parametrize("call", ["mp.spawn(*given)", "mp.spawn(f, (), 1, True, False, 'fork')", "mp.spawn()"])
def test_arguments_that_are_not_certain_are_left(call: str) -> None:
    source = f"def f(rank):\n    pass\n{call}\n"
    ported = port_source(HEAD + source, Plan("torch", "paddle_3"))
    assert ported.text == PORTED + source
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "no-equivalent")]


PROGRAM = """
import sys
import numpy as np
import torch.distributed as dist
from torch.multiprocessing import spawn

def work(rank, size, folder):
    dist.init_process_group(rank=rank, world_size=size)
    total = np.array([10.0 + rank])
    dist.all_reduce(total)
    open(f"{folder}/{rank}", "w").write(f"{rank} {total[0]}")
    dist.destroy_process_group()

if __name__ == "__main__":
    spawn(work, args=(2, sys.argv[1]), nprocs=2)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["paddle_2", "paddle_3"])
def test_the_ported_program_runs(tmp_path: Path, target: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(port_source(PROGRAM, Plan("torch", target)).text)
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=300)
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["0 21.0", "1 21.0"]
