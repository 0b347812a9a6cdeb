"""What counts as a tensor: only what nothing in the source speaks against is rewritten, and the rest is reported."""

from __future__ import annotations

import ast
import re

import pytest

from shim.port import Plan, Ported, port_source


def port(body: str, one: str = "torch", other: str = "paddle_3", signature: str = "x, n: int") -> Ported:
    framework = "paddle" if one.startswith("paddle") else one
    source = f"import {framework}\nimport {framework}.distributed as dist\ndef f({signature}):\n"
    source += "".join(f"    {line}\n" for line in body.splitlines())
    ported = port_source(source, Plan(one, other, scope="statements"))
    ast.parse(ported.text)
    return ported


def rules(ported: Ported) -> list[str]:
    return [entry.rule for entry in ported.entries]


OTHERS = [
    "x = 1.5",
    "x = -n",
    "x = 'a'",
    "x = f'{n}'",
    "x = [1, 2]",
    "x = {}",
    "x = True",
    "x = n > 1",
    "x = not n",
    "x = x.item()",
    "x = float(n)",
    "x = x.numpy()",
    "for x in range(n): pass",
    "x, y = 1, 2",
    "if isinstance(x, (int, float)): return x / n",
]


@pytest.mark.parametrize("line", OTHERS)
def test_a_name_that_is_also_something_else_is_reported_alone(line: str) -> None:
    ported = port(f"{line}\nx /= n\ny = x.view(2, 1)\ndist.all_reduce(x)")
    assert "    x /= n\n    y = x.view(2, 1)\n" in ported.text
    assert rules(ported)[-2:] == ["may-be-tensor", "may-be-tensor"]


@pytest.mark.parametrize("signature", ["x: float", "x=0.5", "x: str = 'a'"])
def test_a_parameter_that_is_also_something_else(signature: str) -> None:
    ported = port("x /= 2\ndist.all_reduce(x)", signature=signature)
    assert "    x /= 2\n" in ported.text
    assert rules(ported) == ["may-be-tensor"]


@pytest.mark.parametrize(
    "line",
    ["x = None", "x = model(x)", "x = x * 2", "x = torch.zeros(2)", "x += x", "assert isinstance(x, torch.Tensor)"],
)
def test_assignments_that_do_not_speak_against_a_tensor(line: str) -> None:
    ported = port(f"{line}\nx /= n\ndist.all_reduce(x)")
    assert "    x.copy_(x / n)\n" in ported.text
    assert not rules(ported)


def test_names_that_are_kept_in_attributes() -> None:
    ported = port("n.kept = y\ndist.all_reduce(n.kept)\ny /= 2", signature="y, n")
    assert "    y.copy_(y / 2)\n" in ported.text
    ported = port("y = torch.zeros(2)\ny = 1\nn.kept = y\ndist.all_reduce(n.kept)\ny /= 2", signature="y, n")
    assert "    y /= 2\n" in ported.text
    assert rules(ported) == ["may-be-tensor"]


def test_lists_and_tensors_by_the_same_name() -> None:
    ported = port("dist.all_gather(x, y)\ndist.all_reduce(x)\nx /= n", signature="x, y, n: int")
    assert "    x /= n\n" in ported.text
    assert rules(ported) == ["may-be-tensor"]


IN_PLACE = [
    ("for p in model.parameters():\n    dist.all_reduce(p.grad)\n    p.grad /= n", "p.grad.copy_(p.grad / n)"),
    ("dist.all_reduce(p.q.grad.data)\np.q.grad.data /= n", "p.q.grad.data.copy_(p.q.grad.data / n)"),
    ("dist.all_reduce(d['loss'])\nd['loss'] /= n", "d['loss'].copy_(d['loss'] / n)"),
    ("for k in d:\n    dist.all_reduce(d[k])\n    d[k] /= n", "d[k].copy_(d[k] / n)"),
    ("y = [torch.zeros(2)]\ny[0] += x\ndist.all_reduce(x)", "y[0].copy_(y[0] + x)"),
    ("y = x.size(0)\ny += 1\ndist.all_reduce(x)", "y += 1"),
    ("y = []\ny += [x]\ndist.all_reduce(x)", "y += [x]"),
    ("y = 'a'\ny += f'{x}'\ndist.all_reduce(x)", "y += f'{x}'"),
    ("d.names += ['a']\ndist.all_reduce(x)", "d.names += ['a']"),
    ("x[0] += 1\nx[:, 1:] *= 2\ndist.all_reduce(x)", "x[0] += 1\n    x[:, 1:] *= 2"),
    ("y = list(x.size())\ny[0] *= n\ndist.all_reduce(x)", "y[0] *= n"),
]


@pytest.mark.parametrize(("body", "expected"), IN_PLACE)
def test_operators_in_place(body: str, expected: str) -> None:
    ported = port(body, signature="x, d, model, p, n: int")
    assert re.search(rf"^ +{re.escape(expected)}$", ported.text, re.MULTILINE)
    assert not rules(ported)


UNCERTAIN = [
    "d.total /= n",
    "d['a'] /= n",
    "d[0].b -= n",
    "y /= n",
    "y = 0\ny += x",
    "y = d.start()\ny += n",
    "y = [torch.zeros(2)]\ny[d.at()] += x",
]


@pytest.mark.parametrize("body", UNCERTAIN)
def test_operators_on_what_may_be_a_tensor_are_reported(body: str) -> None:
    ported = port(f"{body}\ndist.all_reduce(x)", signature="x, y, d, n: int")
    assert body.splitlines()[-1] in ported.text
    assert rules(ported) == ["may-be-tensor"]
    back = port(f"{body.replace('torch', 'paddle')}\ndist.all_reduce(x)", "paddle_3", "torch", "x, y, d, n: int")
    assert "may-be-tensor" in rules(back)


def test_gradients_of_paddle_are_changed_in_place_as_in_torch() -> None:
    ported = port("dist.all_reduce(p.grad)\np.grad /= n", "paddle_3", "torch", "p, n: int")
    assert "    p.grad /= n\n" in ported.text
    assert not rules(ported)


def test_the_kinds_of_attributes_by_their_assignments() -> None:
    source = (
        "import torch\nimport torch.distributed as dist\nclass A:\n    def __init__(self):\n"
        "        self.step = 0\n        self.sum = torch.zeros(2)\n        self.both = torch.zeros(2)\n"
        "    def add(self, x):\n        self.step += 1\n        self.sum += x\n        self.both = 0\n"
        "        self.both += x\n        dist.all_reduce(x)\n"
    )
    ported = port_source(source, Plan("torch", "paddle_3", scope="statements"))
    assert "self.step += 1\n        self.sum.copy_(self.sum + x)\n" in ported.text
    assert [(entry.rule, entry.line) for entry in ported.entries if entry.rule != "for-model-converter"] == [
        ("may-be-tensor", 12)
    ]
