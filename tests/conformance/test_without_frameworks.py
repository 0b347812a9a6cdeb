"""``shim conformance FILES`` where no framework is installed: what needs a frontend and NumPy alone runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HIDE = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
hidden = ("torch", "paddle", "mindspore")
PathFinder.find_spec = classmethod(lambda _, name, *rest: None if name in hidden else find(name, *rest))
"""
OURS = """
```python
import numpy as np
import shim.frontends.torch.distributed as dist
x = np.full(2, dist.get_rank() + 1.0)
dist.all_reduce(x)
print(x)  # [3., 3.]
```

Then:

```python
import numpy as np
y = np.zeros(1) + dist.get_rank()
dist.broadcast(y, 1)
print(y)  # [1.]
```

```python
# ranks: 3
import shim.frontends.paddle_3.distributed as dist
dist.init_parallel_env()
print(dist.get_world_size())
# shows: 3
```
"""
THEIRS = """
```python
import torch
import shim.frontends.torch.distributed as dist
dist.all_reduce(torch.ones(2))
```

```python
print(input)  # which torch's documents leave to the reader, a tensor
```
"""


def conformance(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(HIDE)
    command = [sys.executable, "-m", "shim", "conformance", *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), *filter(None, sys.path))), "COLUMNS": "120"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_blocks_that_need_a_frontend_and_numpy_alone_run(tmp_path: Path) -> None:
    (tmp_path / "ours.md").write_text(OURS)
    done = conformance(tmp_path, "ours.md", "--every", "--reference")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 examples, 3 verdicts, 3 pass" in done.stdout
    assert "torch (not installed)" in done.stdout


def test_the_others_are_named_and_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "mixed.md").write_text(OURS + THEIRS)
    done = conformance(tmp_path, "mixed.md")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "torch: asked for and not installed" in done.stdout
    assert "3 examples, 3 verdicts, 3 pass, 1 missing" in done.stdout
