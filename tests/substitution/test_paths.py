"""Whichever path leads to what a frontend stands in for, a program gets the frontend's; and only the program does."""

from __future__ import annotations

import importlib
import pickle
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.distributed.device_mesh
import torch.distributed.nn
import torch.distributed.rendezvous
from preloaded_programs import run_python

import shim.frontends.torch.distributed as ours
from shim.substitution import as_installed
from shim.substitution.mirrors import Mirrors

# Expressions over the module of a path, and what they give: a module of ours, or the framework's own.
TORCH = {
    "torch.distributed.rendezvous": ["it.rendezvous", "it.Store"],
    "torch.distributed.device_mesh": ["it.get_rank", "it._get_default_group"],
    "torch.distributed": ["it.rendezvous", "it.device_mesh.get_rank", "it.nn.functional.all_gather"],
    "torch.distributed.nn": ["it.functional.all_reduce"],
    "torch.utils.data": ["it.DistributedSampler", "it.distributed.DistributedSampler"],
    "torch.utils.data.distributed": ["it.DistributedSampler"],
    "torch.nn.parallel.distributed": ["it.dist.all_reduce", "it._get_default_group"],
}
PADDLE = {
    "paddle": ["it.DataParallel", "it.io.DistributedBatchSampler", "it.distributed.parallel.get_rank"],
    "paddle.distributed": ["it.DataParallel", "it.communication.all_to_all.alltoall"],
    "paddle.distributed.parallel": ["it.init_parallel_env", "it.DataParallel", "it.ParallelEnv"],
    "paddle.distributed.communication.all_reduce": ["it.all_reduce"],
    "paddle.distributed.communication.stream.all_gather": ["it.all_gather"],
    "paddle.distributed.spawn": ["it.spawn"],
}
MINDSPORE = {
    "mindspore.ops.function.comm_func": ["it.all_reduce", "it.init_process_group", "it.get_group_size"],
    "mindspore.ops.function": ["it.comm_func.broadcast"],
    "mindspore.mint.distributed.distributed": ["it.all_reduce"],
    "mindspore.mint": ["it.distributed.all_reduce"],
    "mindspore.communication": ["it.management.init", "it.comm_func.all_reduce", "it.init"],
    "mindspore.ops.operations._inner_ops": ["it.get_rank"],
}

PROGRAM = """
import importlib, sys
for path, expressions in {paths!r}.items():
    it = importlib.import_module(path)
    assert it is __import__(path, fromlist=["something"])
    for expression in expressions:
        name, _, further = expression.removeprefix("it.").partition(".")
        scope = {{}}
        exec(f"from {{path}} import {{name}}", globals(), scope)
        found = eval(expression)
        assert found is eval(f"{{name}}.{{further}}".rstrip("."), scope)
        if not found.__module__.startswith("shim.frontends."):
            print(path, expression, found)
assert all(type(sys.modules[path]).__name__ == "module" for path in {paths!r})
print("done")
"""


@pytest.mark.parametrize("paths", [TORCH, PADDLE, MINDSPORE], ids=["torch", "paddle", "mindspore"])
def test_every_path_gives_the_frontends(paths: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(paths=paths))
    done = run_python("-W", "ignore", "-m", "shim.substitution", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["done"]


def test_attributes_after_importing_nothing_but_the_framework() -> None:
    with as_installed():
        import torch as whole
    assert whole.distributed.nn.functional.all_reduce.__module__.startswith("shim.frontends.torch")
    assert whole.distributed.device_mesh.get_rank is ours.get_rank


def test_star_imports_of_modules_that_no_frontend_has() -> None:
    names: dict[str, object] = {}
    with as_installed():
        exec(
            "from torch.distributed.device_mesh import *; from torch.distributed.rendezvous import *", globals(), names
        )
    assert names["rendezvous"] is ours.rendezvous is not torch.distributed.rendezvous


def test_importlib_within_the_block_and_nowhere_else() -> None:
    other = ModuleType("other")
    with as_installed():
        import importlib as within
        import importlib.util
        from importlib import import_module

        assert __import__("torch.distributed").distributed.all_reduce is ours.all_reduce
        exec("found = __import__('torch.distributed').distributed", vars(other))
        assert sys.modules["importlib"].import_module("torch.distributed") is torch.distributed
    assert within.import_module("torch.distributed").all_reduce is ours.all_reduce
    assert import_module(".rendezvous", "torch.distributed").rendezvous is ours.rendezvous
    assert within.import_module("json") is importlib.import_module("json")
    assert within.util is importlib.util
    assert other.found is torch.distributed
    assert __import__("torch").distributed is torch.distributed


def test_types_of_a_view_are_the_frontends() -> None:
    with as_installed():
        import torch.distributed as dist

    def communicate(group: dist.ProcessGroup | None, op: dist.ReduceOp) -> dist.Work: ...

    hints = typing.get_type_hints(communicate, localns={"dist": dist})
    assert hints == {"group": ours.ProcessGroup | None, "op": ours.ReduceOp, "return": ours.Work}
    dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    try:
        assert isinstance(dist.group.WORLD, dist.ProcessGroup)
        assert not torch.distributed.is_initialized() or dist.group.WORLD is torch.distributed.group.WORLD
    finally:
        dist.destroy_process_group()


def test_a_view_goes_through_pickle_as_itself() -> None:
    with as_installed():
        import torch.distributed as dist
    assert pickle.loads(pickle.dumps(dist)) is dist


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirrors:
    """A framework of two modules, of which a frontend mirrors one, which is not imported."""
    files = {
        "framework/__init__.py": "",
        "framework/groups.py": "def reduce(): ...\ndef other(): ...\nclass Group: ...\nLIMIT = 3\n",
        "frontend/__init__.py": "",
        "frontend/groups.py": "__all__ = ['LIMIT', 'Group', 'reduce']\ndef reduce(): ...\nclass Group: ...\nLIMIT = 4\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield Mirrors("framework", "frontend")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("framework", "frontend")]:
        del sys.modules[name]


def test_mirrors_go_by_identity_and_import_nothing_of_the_framework(made_up: Mirrors) -> None:
    assert made_up.instead_of(len) is None
    assert not {"framework", "framework.groups"} & set(sys.modules)
    real, frontend = (importlib.import_module(name) for name in ("framework.groups", "frontend.groups"))
    alias = real.reduce
    assert made_up.instead_of(alias) is frontend.reduce
    assert made_up.instead_of(real.Group) is frontend.Group
    assert made_up.instead_of(real.other) is None
    assert made_up.instead_of(real.LIMIT) is None  # 3 is everybody's
