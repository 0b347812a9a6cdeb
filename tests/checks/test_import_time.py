from __future__ import annotations

import subprocess
import sys

import pytest

from checks import import_time

# Modules that cannot be imported just so, each with the reason.
NOT_ALONE = {
    "shim.frontends._paddle.training.batch_sampler": "is imported once paddle is, whose classes it needs",
    "shim.frontends._paddle.training.data_parallel": "likewise",
    "shim.frontends._paddle.training.same_networks": "likewise",
    "shim.frontends._paddle.training.gradients": "likewise",
    "shim.frontends.torch._functional.seen_calls": "is imported once torch is, whose operators it needs",
    "shim.frontends.mindspore._gradients.recorded": "is imported once mindspore is, whose classes it needs",
    "shim.frontends.mindspore._primitives.compiled": "likewise",
    "shim.frontends.mindspore._training.boost_cells": "likewise",
    "shim.frontends.mindspore._training.grad_reducer": "likewise",
    "shim.frontends.mindspore._training.model": "likewise",
    "shim.frontends.mindspore._training.parallel_mode": "likewise",
    "shim.frontends.mindspore._training.train_cells": "likewise",
    "shim.frontends.paddle": "raises, to say which Paddle to choose",
    "shim.frontends.torch._functional.async_tensor": "is imported once torch is, whose classes it needs",
    "shim.frontends.torch._functional.autograd": "likewise",
    "shim.frontends.torch._functional.graph_operators": "likewise",
    "shim.frontends.torch._groups.sampler": "likewise",
}


@pytest.mark.parametrize(
    "source",
    [
        "import numpy\n",
        "import torchless\n",
        "from shim.frontends.torch import distributed\n",
        "from .torch import distributed\n",
        "def ask():\n    import torch\n",
        "class Adapter:\n    def ask(self):\n        from paddle import distributed\n",
        "if TYPE_CHECKING:\n    import mindspore\n",
    ],
)
def test_imports_that_do_not_run_at_once_pass(write_tree, source: str) -> None:
    assert import_time.check(write_tree({"shim/a.py": source})) == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch\n", "torch"),
        ("import os, paddle.distributed as dist\n", "paddle.distributed"),
        ("from mindspore import ops\n", "mindspore"),
        ("try:\n    from mpi4py import MPI\nexcept ImportError:\n    MPI = None\n", "mpi4py"),
        ("if True:\n    import torch\n", "torch"),
        ("class Adapter:\n    import torch\n", "torch"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import torch\n", "torch"),
    ],
)
def test_imports_that_run_at_once_are_found(write_tree, source: str, name: str) -> None:
    findings = import_time.check(write_tree({"shim/a.py": source}))
    assert len(findings) == 1
    assert f"imports {name} when" in findings[0]


def test_importing_everything_imports_no_framework() -> None:
    program = (
        "import importlib, pkgutil, sys, shim\n"
        "for module in pkgutil.walk_packages(shim.__path__, 'shim.', onerror=lambda name: None):\n"
        f"    if not module.name.endswith('__main__') and module.name not in {set(NOT_ALONE)!r}:\n"
        f"        if not module.name.startswith({import_time.OF_TORCH!r}):\n"
        "            importlib.import_module(module.name)\n"
        f"print(sorted({set(import_time.FOREIGN)!r} & set(sys.modules)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stdout.strip()) == (0, "[]"), ended.stderr
