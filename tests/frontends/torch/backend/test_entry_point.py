"""torch finds the backend in the installed package: nothing is imported for it, in any process."""

from __future__ import annotations

import os
import subprocess
import sys

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
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    loaded, told = ended.stdout.splitlines()
    assert (loaded == "[]") == (served != "1")  # the engine comes with the first group
    assert told == f"{group} {backend} [1.0, 1.0]"
