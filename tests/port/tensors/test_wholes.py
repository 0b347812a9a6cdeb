"""An expression, and what its value flows into, is ported whole or not at all: no line computes with tensors of two frameworks."""

from __future__ import annotations

import re

import pytest

from shim.port import Plan, Ported, port_source
from shim.port.apis import APIS

HEADS = {
    "torch": "import torch\nimport torch.distributed as dist\n",
    "paddle_3": "import paddle\nimport paddle.distributed as dist\n",
    "mindspore": "import mindspore\nimport mindspore.mint.distributed as dist\n",
}
UNKNOWN = {"torch": "torch.histc", "paddle_3": "paddle.histogram", "mindspore": "mindspore.mint.histc"}
DIRECTIONS = [(one, other) for one in HEADS for other in APIS if APIS[one].framework != APIS[other].framework]


def port(body: str, one: str = "torch", other: str = "paddle_3") -> Ported:
    return port_source(HEADS[one] + body, Plan(one, other, scope="statements"))


def frameworks(text: str) -> set[str]:
    """The frameworks whose tensors *text* names, outside of imports."""
    lines = [line for line in text.split("\n") if not line.startswith("import")]
    return {*re.findall(r"\b(torch|paddle|mindspore)\.", "\n".join(lines))}


BODIES = [
    "def f(x):\n    dist.all_reduce(x)\n    y = {zeros}(x)\n    z = {unknown}(y)\n    return {zeros}(z)\n",
    "def f(x):\n    dist.all_reduce(x)\n    return {unknown}({zeros}(x))\n",
    "def f(x):\n    dist.all_reduce(x)\n    for y in [x, {zeros}(x)]:\n        {unknown}(y)\n",
    "def f(x):\n    dist.all_reduce(x)\n    if {unknown}(x) is None:\n        x = {zeros}(x)\n    return x\n",
    "def f(x):\n    dist.all_reduce(x)\n    return g({zeros}(x))\ndef g(y):\n    dist.all_reduce(y)\n    return {unknown}(y)\n",
    "def f(x):\n    dist.all_reduce(x)\n    y = g(x)\n    return {unknown}(y)\ndef g(y):\n    dist.all_reduce(y)\n    return {zeros}(y)\n",
    "class A:\n    def f(self, x):\n        dist.all_reduce(x)\n        self.x = {zeros}(x)\n    def g(self):\n        dist.barrier()\n"
    "        return {unknown}(self.x)\n",
    "x = {zeros}(a)\ndist.all_reduce(x)\ny = {unknown}(x)\n",
]


@pytest.mark.parametrize(("one", "other"), DIRECTIONS)
@pytest.mark.parametrize("body", BODIES)
def test_what_meets_a_name_that_stays_stays(body: str, one: str, other: str) -> None:
    framework = APIS[one].framework
    zeros = f"{framework}{'.mint' * (one == 'mindspore')}.zeros_like"
    ported = port(body.format(zeros=zeros, unknown=UNKNOWN[one]), one, other)
    assert ported.text.count(zeros) == body.count("{zeros}")
    assert frameworks(ported.text) == {framework}
    (entry,) = [entry for entry in ported.entries if entry.kind == "left"]
    assert UNKNOWN[one] in (HEADS[one] + body.format(zeros=zeros, unknown=UNKNOWN[one])).splitlines()[entry.line - 1]
    assert "stays, too: line" in entry.advice


@pytest.mark.parametrize("unknown", ["y = torch.histc(x)", "torch.manual_seed(1)", "n = torch.get_num_threads()"])
def test_the_rest_of_the_function_is_ported(unknown: str) -> None:
    ported = port(
        f"def f(x, other):\n    dist.all_reduce(x)\n    {unknown}\n    dist.all_reduce(other)\n    return torch.zeros_like(other)\n"
    )
    assert "return paddle.zeros_like(other)" in ported.text
    assert unknown in ported.text


def test_no_grad_goes_with_what_is_in_it() -> None:
    for start in ("    with torch.no_grad():\n        y = torch.zeros_like(x)\n        torch.histc(y)\n",):
        ported = port(f"def f(x):\n    dist.all_reduce(x)\n{start}")
        assert start in ported.text
    ported = port("@torch.no_grad()\ndef f(x):\n    dist.all_reduce(x)\n    torch.histc(torch.zeros_like(x))\n")
    assert "paddle." not in ported.text.replace("paddle_3", "")


def test_an_annotation_says_what_the_function_takes() -> None:
    ported = port("def f(x: torch.Tensor) -> torch.Tensor:\n    dist.all_reduce(x)\n    return torch.histc(x)\n")
    assert "def f(x: torch.Tensor) -> torch.Tensor:\n" in ported.text
    assert "import paddle\n" not in ported.text


def test_a_class_of_autograd_stays_whole() -> None:
    body = (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        dist.all_reduce(x)\n        return x.clone()\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return torch.histc(g)\n"
    )
    ported = port(body)
    assert "class F(torch.autograd.Function):" in ported.text
    assert "paddle." not in ported.text.replace("paddle_3.", "")


def test_what_is_ported_is_counted_once() -> None:
    body = "def f(x):\n    dist.all_reduce(x)\n    return torch.zeros_like(x)\n"
    alone = port(body).places
    assert port(f"{body}def g(y):\n    dist.all_reduce(y)\n    return torch.histc(y)\n").places == alone + 1
