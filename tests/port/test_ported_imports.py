"""Which imports a port writes, keeps and takes out."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, Ported, port_source


def port(source: str, target: str) -> Ported:
    ported = port_source(source, Plan("torch", target))
    ast.parse(ported.text)
    return ported


CASES = {
    "one of two imports that bind torch": (
        "paddle_3",
        "import torch\nimport torch.distributed\nimport os\n\ntorch.distributed.barrier()\n",
        "import torch\nimport shim.frontends.paddle_3.distributed as dist\nimport os\n\ndist.barrier()\n",
    ),
    "a class that the target has not, as Python's str takes its place": (
        "mindspore",
        "import torch\nfrom torch.distributed import ProcessGroup\n\ndef f(g: ProcessGroup):\n    return g.size()\n",
        "import torch\nimport shim.frontends.mindspore.mint.distributed as dist\n\ndef f(g: str):\n    return dist.get_world_size(g)\n",
    ),
    "such a class in a block of its own": (
        "mindspore",
        "import torch\nif torch.x:\n    from torch.distributed import ProcessGroup\n\ng: ProcessGroup\n",
        "import torch\nif torch.x:\n    pass\n\ng: str\n",
    ),
    "None where an import fails": (
        "paddle_3",
        "try:\n    from torch.distributed import all_reduce\nexcept ImportError:\n    all_reduce = None\nall_reduce(t, async_op=True)\n",
        "try:\n    from shim.frontends.paddle_3.distributed import all_reduce\nexcept ImportError:\n    all_reduce = None\n"
        "all_reduce(t, sync_op=False)\n",
    ),
    "a call that loses all its arguments": (
        "paddle_3",
        "import torch.distributed as dist\ndist.init_process_group(\n    backend='gloo',\n)\n",
        "import shim.frontends.paddle_3.distributed as dist\ndist.init_parallel_env()\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_imported(case: str) -> None:
    target, source, expected = CASES[case]
    ported = port(source, target)
    assert ported.text == expected
    assert "left" not in {entry.kind for entry in ported.entries}


def test_a_class_for_other_files_stays_and_is_reported() -> None:
    source = "from torch.distributed import ProcessGroup\n"
    ported = port(source, "mindspore")
    assert ported.text == source
    assert [entry.rule for entry in ported.entries] == ["no-equivalent"]


def test_a_name_of_several_imports_is_reported_where_it_is_used() -> None:
    source = "try:\n    from torch.distributed import barrier as f\nexcept ImportError:\n    from os import abort as f\nf()\n"
    ported = port(source, "paddle_3")
    assert [(entry.line, entry.rule) for entry in ported.entries] == [(5, "several-imports")]


def test_a_group_made_by_its_class_is_reported() -> None:
    source = "import torch.distributed as dist\nx = dist.ProcessGroup(0, None)\n"
    ported = port(source, "paddle_3")
    assert ported.text.endswith("x = dist.ProcessGroup(0, None)\n")
    assert [(entry.line, entry.rule) for entry in ported.entries] == [(2, "no-equivalent")]
