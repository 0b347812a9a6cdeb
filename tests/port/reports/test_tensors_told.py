"""Whose tensors a ported program computes with: the summary says so, and calls that cannot take them are left."""

from __future__ import annotations

from pathlib import Path

import pytest

from shim.port import Plan, port_source
from shim.port.reports.wording import tensors_told
from shim.port.run import port_paths

CODE = "import torch\nimport torch.distributed as dist\nx = torch.zeros(2)\ndist.all_reduce(x)\ndist.barrier()\ndist.send(x, 1)\n"
TOLD = {
    Plan(
        "torch", "mindspore"
    ): "still torch's, on the devices on which torch has them; to run on Ascend, port with --onto native.",
    Plan("torch", "paddle_3"): "still torch's, on the devices on which torch has them.",
    Plan("torch", "paddle_3", scope="statements"): "paddle's in the code that calls collectives, torch's in all other.",
    Plan(
        "torch", "paddle_3", "native", "statements"
    ): "torch's in all other. Port that, too, before you run the program.",
    Plan("torch", "paddle_3", "native"): "still torch's, which paddle itself does not take.",
}


@pytest.mark.parametrize(("plan", "told"), TOLD.items())
def test_the_summary_says_whose_tensors_there_are(tmp_path: Path, plan: Plan, told: str) -> None:
    (tmp_path / "a.py").write_text(CODE)
    result = port_paths([tmp_path], plan, jobs=1)
    assert tensors_told(result).startswith("Tensors: ")
    assert tensors_told(result).endswith(told)


def test_nothing_is_said_where_no_tensor_is_concerned(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("torchrun --nproc_per_node 2 a.py\n")
    assert tensors_told(port_paths([tmp_path], Plan("torch", "mindspore"), jobs=1)) == ""
    (tmp_path / "a.py").write_text(CODE.replace("torch", "paddle"))
    assert tensors_told(port_paths([tmp_path], Plan("paddle_2", "paddle_3"), jobs=1)) == ""


def test_calls_that_the_framework_itself_refuses_are_left_once_a_file() -> None:
    (entry,) = port_source(CODE, Plan("torch", "mindspore", onto="native")).entries
    assert (entry.kind, entry.rule, entry.line) == ("left", "source-tensors", 4)
    assert entry.why.endswith("on line 4, 6")
    wider = [Plan("torch", "mindspore", "native", "statements"), Plan("torch", "mindspore", "native", "files")]
    for plan in (Plan("torch", "mindspore"), *wider):
        assert not port_source(CODE, plan).entries
    assert not port_source(CODE.replace("torch", "paddle"), Plan("paddle_2", "paddle_3", onto="native")).entries
    without = "import torch.distributed as dist\ndist.barrier()\ndist.all_gather_object(x, 1)\n"
    assert not port_source(without, Plan("torch", "mindspore", onto="native")).entries
