"""Names of a framework that a file has by ``import *`` of another module."""

from __future__ import annotations

import pytest

from shim.port import Plan, port_source

STAR = "from helper_names import *\n"


@pytest.mark.parametrize(
    ("source", "target", "before", "after"),
    [
        (
            "torch",
            "paddle_3",
            "torch.distributed.all_reduce(x, async_op=True)",
            "import shim.frontends.paddle_3.distributed as dist\ndist.all_reduce(x, sync_op=False)",
        ),
        (
            "paddle_3",
            "torch",
            "outs = []\npaddle.distributed.all_gather(outs, x)",
            "import shim.frontends.torch.distributed as dist\nouts = []\n"
            "outs.extend(paddle.empty_like(x) for _ in range(dist.get_world_size()))\ndist.all_gather(outs, x)",
        ),
        (
            "mindspore",
            "torch",
            "def f(x):\n    return mindspore.mint.distributed.barrier()",
            "import shim.frontends.torch.distributed as dist\ndef f(x):\n    return dist.barrier()",
        ),
        ("paddle_2", "paddle_3", "paddle.distributed.barrier()", None),
    ],
)
def test_an_unbound_framework_is_the_framework(source: str, target: str, before: str, after: str | None) -> None:
    onto = "shim" if after is not None else "native"
    ported = port_source(f"{STAR}{before}\n", Plan(source, target, onto=onto))
    assert ported.text == f"{STAR}{before if after is None else after}\n"
    assert not ported.entries


def test_tensors_are_ported_too() -> None:
    source = f"{STAR}def f(x):\n    torch.distributed.all_reduce(x)\n    return torch.zeros_like(x)\n"
    ported = port_source(source, Plan("torch", "paddle_3", scope="statements"))
    assert "import paddle\n" in ported.text
    assert "    return paddle.zeros_like(x)\n" in ported.text


def test_what_may_be_the_api_is_reported() -> None:
    ported = port_source(
        f"{STAR}torch.cuda\ndist.all_reduce(x)\nother.all_reduce(x)\ndist.f()\n", Plan("torch", "paddle_3")
    )
    assert [(entry.kind, entry.rule, entry.line) for entry in ported.entries] == [("left", "star-import", 3)]


@pytest.mark.parametrize(
    "before", ["torch = f()\n", "def torch(): ...\n", "import helper as torch\n", "for torch in x: ...\n"]
)
def test_what_the_file_binds_is_none(before: str) -> None:
    source = f"{STAR}{before}torch.distributed.barrier()\n"
    assert port_source(source, Plan("torch", "paddle_3")).text == source
