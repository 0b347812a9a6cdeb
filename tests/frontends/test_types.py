"""A type checker sees the frontends' signatures: programs that fit them pass, and mistakes are found."""

from __future__ import annotations

from pathlib import Path

from mypy import api

import shim

GOOD = """
from datetime import timedelta
import numpy as np
import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.paddle_3.distributed as paddle
import shim.frontends.torch.distributed as torch

torch.init_process_group("gloo", timeout=timedelta(seconds=5))
array = np.zeros(3)
work: torch.Work | None = torch.all_reduce(array, torch.ReduceOp.SUM, async_op=True)
source: int = torch.recv(array, src=0)
group = torch.new_group([0, 1])
task = paddle.all_reduce(array, paddle.ReduceOp.MAX, sync_op=True)
name: str = mint.new_group([0, 1])
handle = mint.all_reduce(array, "sum", name, True)
"""

MISTAKES = {
    "an argument too few": "torch.all_gather([array])",
    "a name that is not a parameter": "torch.all_reduce(array, sync_op=True)",
    "a group string": "torch.all_reduce(array, group='world')",
    "a flag that is no bool": "torch.all_reduce(array, async_op='yes')",
    "torch's keyword in Paddle": "paddle.all_reduce(array, async_op=True)",
    "a group number in MindSpore": "mint.all_reduce(array, 'sum', 0)",
    "seconds for a timedelta": "torch.barrier(timeout=5)",
    "a result that is none": "answer: int = torch.get_backend()",
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


def test_the_package_says_that_it_has_types() -> None:
    assert Path(shim.__file__).with_name("py.typed").is_file()
