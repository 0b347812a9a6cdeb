"""torch finds the backend in the installed package: nothing is imported for it, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, tempfile
import torch, torch.distributed as dist
print(sorted(name for name in sys.modules if name.startswith(("shim.core", "shim._native"))))
store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group(sys.argv[1], store=store, rank=0, world_size=1)
tensor = torch.ones(2)
dist.all_reduce(tensor)
print(type(dist.group.WORLD).__name__, dist.get_backend(), tensor.tolist())
dist.destroy_process_group()  # without it, gloo itself ends one process in forty by std::terminate
"""


@pytest.mark.parametrize(
    ("served", "backend", "group"),
    [("", "shim", "EngineGroup"), ("1", "gloo", "EngineGroup"), ("0", "gloo", "ProcessGroup")],
)
def test_a_process_that_imports_torch_alone(served: str, backend: str, group: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, backend],
        env={**os.environ, "SHIM_TORCH_BACKEND": served},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    loaded, told = ended.stdout.splitlines()
    assert (loaded == "[]") == (served != "1")  # the engine comes with the first group
    assert told == f"{group} {backend} [1.0, 1.0]"


ASYNCHRONOUS_CHECKPOINT = """
import os, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    state = {f"of {rank}": torch.arange(4.0) + rank, "of all": torch.full((3,), 7.0)}
    for folder in sys.argv[1:]:
        saved = checkpoint.async_save(state, checkpoint_id=folder, async_checkpointer_type=AsyncCheckpointerType.PROCESS)
        saved.result()
    dist.barrier()
    found = {name: torch.zeros_like(value) for name, value in state.items()}
    checkpoint.load(found, checkpoint_id=sys.argv[-1])
    print(type(dist.group.WORLD).__name__, all(torch.equal(found[name], state[name]) for name in state))
"""


def test_checkpoints_are_saved_by_a_process_of_each_rank(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ASYNCHRONOUS_CHECKPOINT)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "shim", "run", "-n", "2"),
            str(program),
            str(tmp_path / "first"),
            str(tmp_path / "second"),
        ],
        env={**os.environ, "SHIM_TORCH_BACKEND": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert sorted(line for line in ended.stdout.splitlines() if "EngineGroup" in line) == [
        f"[{rank}] EngineGroup True" for rank in range(2)
    ]
    assert (
        "Stack (most recent call first)" not in ended.stderr
    )  # the processes are ended by SIGTERM as a matter of course


def test_a_value_that_is_none_is_told() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import torch"],
        env={**os.environ, "SHIM_TORCH_BACKEND": "off"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 1
    assert "SHIM_TORCH_BACKEND must be 0 or 1, got 'off'" in ended.stderr


@pytest.mark.parametrize("served", ["", "1"])
@pytest.mark.parametrize("first", ["import torch, shim.torch_backend", "import shim.torch_backend, torch"])
def test_the_order_of_imports_makes_no_difference(served: str, first: str) -> None:
    program = f"{first}\nprint('shim' in torch.distributed.Backend.backend_list)"
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "SHIM_TORCH_BACKEND": served},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.stdout == "True\n", ended.stderr


def test_a_program_with_a_module_called_shim_still_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "shim.py").write_text("")
    (tmp_path / "program.py").write_text("import shim, torch\nprint(shim.__file__, torch.ones(1).item())\n")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.meta_path[:] = [one for one in sys.meta_path if 'shim' not in type(one).__module__.lower() and 'Editable' not in type(one).__name__]\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[4]}"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.stdout == f"{tmp_path / 'shim.py'} 1.0\n", ended.stderr
