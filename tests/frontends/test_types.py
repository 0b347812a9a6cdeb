"""A type checker sees the frontends' signatures: programs that fit them pass, and mistakes are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

import shim
from checks.source import is_public, modules, string_list

GOOD = """
from datetime import timedelta
import numpy as np
import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.mindspore.ops as ops
import shim.frontends.paddle_2.distributed as paddle_2
import shim.frontends.paddle_3.distributed as paddle
import shim.frontends.torch.distributed as torch
from shim import types

torch.init_process_group("gloo", timeout=timedelta(seconds=5))
array = np.zeros(3)
work: torch.Work | None = torch.all_reduce(array, torch.ReduceOp.SUM, async_op=True)
source: int = torch.recv(array, src=0)
group = torch.new_group([0, 1])
torch.all_reduce(array, group=group)
task = paddle.all_reduce(array, paddle.ReduceOp.MAX, sync_op=True)
arrays = [np.zeros(3), np.zeros(3)]
torch.all_gather(arrays, array)
torch.scatter(array, arrays, src=0)
torch.reduce_scatter(array, arrays)
torch.all_to_all(arrays, arrays)
torch.gather(array, arrays)
torch.all_reduce_coalesced(arrays)
torch.all_gather_coalesced([arrays], arrays)
paddle.all_gather(arrays, array)
paddle.alltoall(arrays, arrays)
paddle.scatter(array, arrays)
paddle.reduce_scatter(array, arrays)
mint.all_gather(arrays, array)
mint.all_to_all(arrays, arrays)
name: str = mint.new_group([0, 1])
handle: types.MindSporeCommHandle | None = mint.all_reduce(array, "sum", name, True)
done: types.PaddleTask | None = paddle.broadcast(array, 0, sync_op=False)


def double(tensor: types.Tensor) -> None:
    torch.all_reduce(tensor, torch.ReduceOp(torch.ReduceOp.MAX))
    torch.broadcast(bytearray(8), 0)
"""

MISTAKES = {
    "an argument too few": "torch.all_gather([array])",
    "a name that is not a parameter": "torch.all_reduce(array, sync_op=True)",
    "a group string": "torch.all_reduce(array, group='world')",
    "a flag that is no bool": "torch.all_reduce(array, async_op='yes')",
    "torch's keyword in Paddle": "paddle.all_reduce(array, async_op=True)",
    "a group number in MindSpore": "mint.all_reduce(array, 'sum', 0)",
    "seconds for a timedelta": "torch.barrier(timeout=5)",
    "a string for a tensor": "torch.all_reduce('hello')",
    "a number for Paddle's tensor": "paddle.broadcast(1, 0)",
    "a number for MindSpore's tensor": "mint.all_reduce(1.0)",
    "a word for torch's reduce op": "torch.all_reduce(array, op='sum')",
    "a word for Paddle's reduce op": "paddle.all_reduce(array, op='sum')",
    "a result that is none": "answer: int = torch.get_backend()",
    "a misspelt name of torch's": "torch.all_redcue(array)",
    "a misspelt name of torch's internals": "torch.distributed_c10d.new_gruop()",
    "a misspelt name of Paddle 3's": "paddle.all_redcue(array)",
    "a misspelt name of Paddle 3's fleet": "paddle.fleet.intit()",
    "a misspelt name of Paddle 2's": "paddle_2.all_redcue(array)",
    "a misspelt name of mint's": "mint.all_redcue(array)",
    "a misspelt primitive": "ops.AllReduec()",
    "a misspelt method of a new group": "group.sise()",
}


def findings(folder: Path, source: str) -> list[str]:
    file = folder / "program.py"
    file.write_text(source, encoding="utf-8")
    told, problems, _ = api.run(["--strict", "--no-error-summary", "--cache-dir", str(folder / "cache"), str(file)])
    assert problems == ""
    return told.splitlines()


def test_programs_that_fit_pass_and_each_mistake_is_found(tmp_path: Path) -> None:
    assert findings(tmp_path, GOOD) == []
    lines = GOOD.count("\n")
    found = findings(tmp_path, GOOD + "\n".join(MISTAKES.values()) + "\n")
    wrong = {int(line.split(":")[1]) - lines - 1 for line in found if ": error:" in line}
    missed = [mistake for i, mistake in enumerate(MISTAKES) if i not in wrong]
    assert missed == []


def test_every_public_name_is_seen(tmp_path: Path) -> None:
    offered = {
        module.name: string_list(module.tree, "__all__") or []
        for module in modules(Path(shim.__file__).parents[1], "shim/frontends")
        if is_public(module.name)
    }
    assert {name.split(".")[2] for name in offered if offered[name]} == {"torch", "paddle_2", "paddle_3", "mindspore"}
    imports = (f"from {module} import {name} as _" for module, names in offered.items() for name in names)
    assert [line for line in findings(tmp_path, "\n".join(imports)) if "[attr-defined]" in line] == []


FRAMEWORKS_TENSORS = """
import torch as real_torch
import torch.distributed as real
import paddle as real_paddle
import shim.frontends.paddle_3.distributed as paddle
import shim.frontends.torch.distributed as dist

dist.all_reduce(real_torch.ones(2), real.ReduceOp.MAX)
dist.all_reduce(real_paddle.ones([2]), dist.ReduceOp.SUM)
paddle.all_reduce(real_torch.ones(2))
"""


@pytest.mark.frameworks
@pytest.mark.nightly  # it reads all of torch and Paddle: 50 processor-seconds
def test_tensors_and_reduce_ops_of_the_frameworks_themselves_fit(tmp_path: Path) -> None:
    ours = [line for line in findings(tmp_path, FRAMEWORKS_TENSORS) if "program.py" in line]
    assert ours == []


def test_the_package_says_that_it_has_types() -> None:
    assert Path(shim.__file__).with_name("py.typed").is_file()
