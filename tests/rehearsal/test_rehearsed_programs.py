"""Programs of all kinds, rehearsed: what they start, store, print and import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_BEGIN = """
import os, sys
import numpy as np
import shim.frontends.torch.distributed as dist
"""


def rehearsed(folder: Path, program: str, *options: str, files: dict[str, str] | None = None) -> dict[str, Any]:
    for name, text in {"program.py": program, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    what = options if "-m" in options else (*options, "program.py")
    command = [sys.executable, "-m", "shim", "rehearse", "-n", "4", "--json", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if found["is_right"] else 1)
    return found


def command_of(process: Path) -> bytes:
    with suppress(OSError):  # it has ended meanwhile
        return (process / "cmdline").read_bytes()
    return b""


def test_ranks_that_never_enter_the_world(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        _BEGIN + "if os.environ['RANK'] == '3': sys.exit()\ndist.init_process_group()\ndist.all_reduce(np.ones(3))",
    )
    assert found["absent"] == [3]
    assert [(one["rank"], one["missing"], one["ended"]) for one in found["stuck"]] == [(r, [3], [3]) for r in range(3)]
    assert not rehearsed(tmp_path, "print(1)")["is_right"]


def test_a_thread_that_outlives_the_program(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        _BEGIN
        + """
import threading, time
dist.init_process_group()
def later():
    time.sleep(0.2)
    dist.all_reduce(np.ones(3 + (dist.get_rank() == 2)))
threading.Thread(target=later).start()
""",
    )
    assert found["disagreements"][0]["what"] == "the shape"


def test_processes_that_ranks_leave_are_ended(tmp_path: Path) -> None:
    mark = f"{time.time_ns() % 10**9}.5"
    program = f"import subprocess\nsubprocess.Popen(['sleep', '{mark}'])\ndist.init_process_group()"
    assert rehearsed(tmp_path, _BEGIN + program)["is_right"]
    assert mark.encode() not in b"".join(map(command_of, Path("/proc").glob("[0-9]*")))


def test_stores(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        _BEGIN
        + """
dist.init_process_group()
rank = dist.get_rank()
store = dist.TCPStore("127.0.0.1", 29511, 4, rank == 0)
assert not store.check(["nothing"])
assert not store.delete_key("nothing")
store.set("last", str(rank))
assert store.get("last") == str(rank).encode()
leader = store.compare_set("leader", "", str(rank))
assert leader == b"0", leader
assert (store.add("members", 1), store.add("members", 0)) == (rank + 1, 4)
store.wait([f"from {3 - rank}"])
""",
    )
    assert found["is_right"], found
    assert found["passes"] <= 3


def test_objects_of_any_size_and_kind(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        _BEGIN
        + """
import threading
dist.init_process_group()
rank = dist.get_rank()
items = ["x" * 300_000] if rank == 2 else [threading.Lock()]
dist.broadcast_object_list(items, 2)
assert len(items[0]) == 300_000
""",
    )
    assert found["is_right"], found


def test_readings_through_views_and_in_modules_of_the_program(tmp_path: Path) -> None:
    module = """
    import torch
    import shim.frontends.torch.distributed as dist
    def step():
        x = torch.ones(100)
        dist.all_reduce(x.view(10, 10))
        if x[0].item() > 1: pass
        x.zero_()
        x[0].item()
    """
    found = rehearsed(
        tmp_path,
        "from model import step, dist\ndist.init_process_group('gloo')\nstep()",
        files={"model.py": module},
    )
    assert [line.rpartition("model.py")[2] for line in found["made_up"]] == [":7 in step"]


def test_a_module_whose_package_asks_at_once_who_it_is(tmp_path: Path) -> None:
    files = {
        "package/__init__.py": "import os\nRANK = int(os.environ['RANK'])",
        "package/train.py": _BEGIN
        + "from package import RANK\ndist.init_process_group()\nassert RANK == dist.get_rank()",
    }
    assert rehearsed(tmp_path, "", "-m", "package.train", files=files)["is_right"]


def test_torchs_own_group_and_its_store(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        """
        import gc, os, torch
        import torch.distributed as dist
        rank = int(os.environ["RANK"])
        dist.init_process_group("shim", init_method="tcp://127.0.0.1:29512", rank=rank, world_size=4)
        gc.collect()
        store = dist.distributed_c10d._get_default_store()
        store.set(f"from {rank}", str(rank))
        assert store.get(f"from {3 - rank}") == str(3 - rank).encode()
        dist.all_reduce(torch.ones(3))
        """,
    )
    assert found["is_right"], found


def test_a_job_of_another_size_is_no_source_of_values(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_BEGIN + "dist.init_process_group()")
    told = {**os.environ, "SHIM_TRACE": str(tmp_path / "job")}
    subprocess.run([sys.executable, "-m", "shim", "run", "-n", "2", "program.py"], env=told, cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "shim", "rehearse", "-n", "4", "--values", "job", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "job of 2 ranks, and 4 are rehearsed" in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    "option", [("--page", "nowhere/page.html", "--cluster", "2x2"), ("--cluster", "3x2"), ("--page", "p")]
)
def test_options_that_cannot_be(option: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    command = [sys.executable, "-m", "shim", "rehearse", "-n", "4", *option, "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2


def test_more_steps_of_ddp_on_one_rank(tmp_path: Path) -> None:
    program = """
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for _ in range(3 + (dist.get_rank() == 1)):
        model(torch.ones(2, 8)).sum().backward()
    """
    for options in (("--as-installed",), ()):  # torch's own classes get groups of the engine without it, too
        found = rehearsed(tmp_path, program, *options)
        assert [(one["rank"], one["ended"]) for one in found["stuck"]] == [(1, [0, 2, 3])]


def test_random_numbers_without_a_seed_differ(tmp_path: Path) -> None:
    count = "np.random.randint(1, 1000)"
    found = rehearsed(tmp_path, _BEGIN + f"dist.init_process_group()\ndist.all_reduce(np.ones({count}))")
    assert found["disagreements"][0]["what"] == "the shape"
    found = rehearsed(
        tmp_path, _BEGIN + f"np.random.seed(1)\ndist.init_process_group()\ndist.all_reduce(np.ones({count}))"
    )
    assert found["is_right"]


def test_threads_with_groups_of_their_own_do_not_wait_for_each_other(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        _BEGIN
        + """
import threading, time
dist.init_process_group()
rank = dist.get_rank()
own = dist.new_group()
def later():
    time.sleep(0.1 * rank)
    dist.all_reduce(np.ones(3), group=own)
thread = threading.Thread(target=later)
thread.start()
time.sleep(0.1 * (3 - rank))
dist.all_reduce(np.ones(4))
thread.join()
""",
    )
    assert found["is_right"], found


def test_only_some_ranks_are_told_the_same(tmp_path: Path) -> None:
    found = rehearsed(
        tmp_path,
        _BEGIN
        + """
dist.init_process_group()
left = np.array([dist.get_rank() + 1])
while True:
    more = left.copy()
    dist.all_reduce(more, op=dist.ReduceOp.MAX)
    if more[0] <= 0: break
    dist.all_reduce(np.ones(more[0]))
    left -= 1
""",
        *("--ranks", "1-2"),
    )
    assert found["is_right"], found


def test_what_never_settles_is_said(tmp_path: Path) -> None:
    program = """
import time
dist.init_process_group()
every = [None] * 4
dist.all_gather_object(every, time.time_ns())
dist.all_reduce(np.ones(1 + every[0] % 1000))
"""
    found = rehearsed(tmp_path, _BEGIN + program, "--passes", "4")
    assert (found["passes"], found["is_settled"]) == (4, False)
    same = program.replace("1 + every[0] % 1000", "3")
    assert rehearsed(tmp_path, _BEGIN + same)["passes"] <= 3


def test_a_value_that_goes_from_rank_to_rank_arrives(tmp_path: Path) -> None:
    """Meanwhile, passes make the same calls as those before: that does not settle them."""
    found = rehearsed(
        tmp_path,
        _BEGIN
        + """
dist.init_process_group()
rank, count = dist.get_rank(), np.array([7])
if rank < 3: dist.recv(count := np.zeros(1, int), rank + 1)
if rank > 0: dist.send(count, rank - 1)
dist.broadcast(count, 0)
assert count[0] == 7
""",
    )
    assert found["is_right"], found
    late = (
        _BEGIN
        + """
dist.init_process_group()
rank, count = dist.get_rank(), np.array([7])
if rank < 3: dist.recv(count := np.zeros(1, int), rank + 1)
if rank > 0: dist.send(count, rank - 1)
if rank == 0 and count[0] == 7: dist.barrier()
"""
    )
    assert [one["rank"] for one in rehearsed(tmp_path, late)["stuck"]] == [0]
