"""What the scope ``statements`` writes, what it leaves alone, and what it reports: one short source, and the port of it."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, Ported, port_source

HEADS = {
    "torch": ("import torch\nimport torch.distributed as dist\n", "dist.broadcast(x, 0)"),
    "paddle_2": ("import paddle\nimport paddle.distributed as dist\n", "dist.broadcast(x, 0)"),
    "paddle_3": ("import paddle\nimport paddle.distributed as dist\n", "dist.broadcast(x, 0)"),
    "mindspore": (
        "import mindspore\nfrom mindspore import mint, ops\nimport mindspore.mint.distributed as dist\n",
        "dist.broadcast(x, 0)",
    ),
}


def port(source: str, one: str, other: str) -> Ported:
    ported = port_source(source, Plan(one, other, scope="statements"))
    ast.parse(ported.text)
    return ported


def program(line: str, api: str) -> str:
    head, collective = HEADS[api]
    return f"{head}def f(x, n: int):\n    {collective}\n    {line}\n"


REWRITES = [
    # the operators that change a tensor in torch make a new one elsewhere
    ("torch", "paddle_3", "x /= n", "x.copy_(x / n)"),
    ("torch", "mindspore", "x += x if n else 0", "x.copy_(x + (x if n else 0))"),
    ("paddle_3", "torch", "x *= 2", "x = x * 2"),
    ("paddle_3", "mindspore", "x *= 2", "x *= 2"),
    ("torch", "paddle_3", "n += 1", "n += 1"),
    # contiguous changes the tensor itself in Paddle
    ("torch", "paddle_3", "y = x.contiguous()", "y = (x if x.is_contiguous() else x.clone())"),
    ("torch", "mindspore", "y = x.contiguous()", "y = x.contiguous()"),
    # sizes of parts, or their number
    ("torch", "paddle_3", "y = x.split(2)", "y = x.split([min(2, x.shape[0] - at) for at in range(0, x.shape[0], 2)])"),
    ("paddle_3", "torch", "y = paddle.split(x, n, axis=1)", "y = torch.split(x, x.shape[1] // n, dim=1)"),
    ("paddle_3", "mindspore", "y = paddle.split(x, [1, 2])", "y = mindspore.ops.split(x, [1, 2])"),
    # dtypes
    ("torch", "paddle_3", "y = torch.full((2,), 1)", "y = paddle.full((2,), 1, dtype=paddle.int64)"),
    ("torch", "mindspore", "y = torch.full((2,), 1.0)", "y = mindspore.ops.full((2,), 1.0, dtype=mindspore.float32)"),
    ("paddle_3", "torch", "y = paddle.full([2], 1)", "y = torch.full([2], 1, dtype=torch.float32)"),
    ("paddle_3", "torch", "y = paddle.zeros([2], 'int64')", "y = torch.zeros([2], dtype=torch.int64)"),
    (
        "torch",
        "mindspore",
        "y = torch.zeros(2, dtype=torch.bool)",
        "y = mindspore.ops.zeros([2], dtype=mindspore.bool_)",
    ),
    (
        "mindspore",
        "torch",
        "y = mint.zeros((2,), dtype=mindspore.float16)",
        "y = torch.zeros((2,), dtype=torch.float16)",
    ),
    # shapes
    ("torch", "paddle_3", "y = torch.zeros(*x.shape, n)", "y = paddle.zeros([*x.shape, n])"),
    ("torch", "paddle_3", "y = torch.zeros(x.numel() * n)", "y = paddle.zeros([x.size * n])"),
    ("mindspore", "paddle_3", "y = x.view(2, -1).asnumpy()", "y = x.view([2, -1]).numpy()"),
    ("paddle_3", "torch", "y = x.shape == [2, n]", "y = list(x.shape) == [2, n]"),
    ("paddle_3", "mindspore", "y = [1] + x.shape", "y = [1] + list(x.shape)"),
    ("torch", "paddle_2", "y = x.size() + (1,)", "y = tuple(x.shape) + (1,)"),
    ("torch", "paddle_3", "y = x.size() + (1,)", "y = x.shape + (1,)"),
    # strings within formatted ones
    ("torch", "paddle_3", "y = f'{x.double()}'", "y = f'{x.astype(\"float64\")}'"),
    ("torch", "paddle_3", 'y = f"{x.double()}"', "y = f\"{x.astype('float64')}\""),
    # no tensor, or not certain to be one
    ("torch", "paddle_3", "y = 'a b'.split()", "y = 'a b'.split()"),
    ("torch", "mindspore", "y = n.size", "y = n.size"),
    # devices
    ("torch", "paddle_3", "y = x.cuda()", "y = x.cuda()"),
    ("torch", "paddle_3", "torch.cuda.synchronize()", "paddle.device.synchronize()"),
    ("torch", "mindspore", "torch.cuda.synchronize()", "mindspore.runtime.synchronize()"),
    (
        "torch",
        "paddle_3",
        "y = torch.zeros(2, device=torch.cuda.current_device(), dtype=x.dtype)",
        "y = paddle.zeros([2], dtype=x.dtype)",
    ),
    # comments and layout stay
    (
        "torch",
        "paddle_3",
        "y = torch.cat(  # all\n        [x, x],\n        dim=0,\n    )",
        "y = paddle.concat(  # all\n        [x, x],\n        axis=0,\n    )",
    ),
]


@pytest.mark.parametrize(
    ("one", "other", "line", "expected"), REWRITES, ids=[f"{each[2]} to {each[1]}" for each in REWRITES]
)
def test_rewrites(one: str, other: str, line: str, expected: str) -> None:
    ported = port(program(line, one), one, other)
    assert (
        "\n".join(
            ported.text.splitlines()[ported.text[: ported.text.index("dist.broadcast")].count("\n") + 1 :]
        ).strip()
        == expected
    )
    assert not [entry for entry in ported.entries if entry.kind == "left"]


LEFT = [
    ("torch", "paddle_3", "y = torch.linalg.norm(x)", "tensor-function"),
    ("torch", "paddle_3", "x.index_add_(0, n, x)", "tensor-function"),
    ("torch", "paddle_3", "y = x.mode(dim=0)", "tensor-function"),
    ("torch", "paddle_3", "y = torch.zeros(2, layout=n)", "no-equivalent-argument"),
    ("torch", "paddle_3", "y = torch.zeros(2, **n)", "unpacked-arguments"),
    ("torch", "mindspore", "y = x.cuda()", "no-equivalent"),
    ("torch", "paddle_3", "y = x.to(device)", "dtype-or-device"),
    ("torch", "paddle_3", "y = torch.split(x + x, 2)", "size-or-number"),
    ("paddle_3", "torch", "y = paddle.split(x, [1, -1])", "size-or-number"),
    ("torch", "mindspore", "y = torch.full((2,), n.value)", "dtype-not-given"),
    ("torch", "paddle_2", "y = torch.nn.functional.pad(x, (0, 1))", "pad-order"),
    ("torch", "paddle_3", "y = n.owner.view(1)", "may-be-tensor"),
    ("torch", "mindspore", "y = n.owner.clone()", "may-be-tensor"),
    ("torch", "paddle_3", "y = list(torch.split(x, [1, 2]))\n    dist.all_gather(y, x)", "views-as-outputs"),
]


@pytest.mark.parametrize(("one", "other", "line", "rule"), LEFT, ids=[f"{each[2]} to {each[1]}" for each in LEFT])
def test_left_with_an_entry(one: str, other: str, line: str, rule: str) -> None:
    ported = port(program(line, one), one, other)
    found = [entry for entry in ported.entries if entry.kind == "left"]
    assert [entry.rule for entry in found] == [rule]
    assert found[0].line == program(line, one)[: program(line, one).index(line)].count("\n") + 1
    assert line.partition("\n")[0].rpartition("= ")[2] in ported.text


def test_functions_without_collectives_are_left_and_named() -> None:
    source = HEADS["torch"][0] + (
        "def f(x):\n    dist.all_reduce(x)\n    return x.view(2, 1)\n"
        "def g(x):\n    return torch.relu(x), x.view(2, 1)\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.cat(x)\n"
        "class Some:\n    def one(self, x):\n        dist.all_reduce(x)\n        return torch.zeros_like(x)\n"
        "    def other(self):\n        return torch.ones(2)\n"
    )
    ported = port(source, "torch", "paddle_3")
    assert "x.view([2, 1])\ndef g" in ported.text
    assert ported.text[ported.text.index("def g") :] == source[source.index("def g") :].replace(
        "torch.zeros_like", "paddle.zeros_like"
    )
    assert ported.text.startswith("import torch\nimport paddle\nimport shim")
    assert [(entry.rule, entry.line, entry.why.partition(" and calls")[0]) for entry in ported.entries] == [
        ("for-model-converter", 6, "g uses torch.relu"),
        ("for-model-converter", 8, "Net uses torch.nn.Module, torch.cat"),
        ("for-model-converter", 15, "Some.other uses torch.ones"),
    ]


def test_the_collectives_alone_by_default() -> None:
    source = program("y = torch.zeros(2, 3)", "torch")
    ported = port_source(source, Plan("torch", "paddle_3"))
    assert "torch.zeros(2, 3)" in ported.text
    assert not ported.entries


def test_groups_are_no_tensors() -> None:
    source = (
        HEADS["torch"][0] + "group = dist.new_group([0])\ndef f(x):\n    dist.all_reduce(x)\n    return group.size()\n"
    )
    ported = port(source, "torch", "paddle_3")
    assert "return group.nranks" in ported.text
    assert not ported.entries


def test_statements_of_the_module() -> None:
    head = HEADS["torch"][0]
    assert "paddle.zeros([2])" in port(f"{head}x = torch.zeros(2)\ndist.all_reduce(x)\n", "torch", "paddle_3").text
    assert "torch.zeros(2)" in port(f"{head}x = torch.zeros(2)\n", "torch", "paddle_3").text


IMPORTS = [
    ("import torch\n", "torch.zeros(2)", "import paddle\n"),
    ("import torch\n", "torch.zeros(2)\n    torch", "import torch\nimport paddle\n"),
    ("import torch as t\n", "t.zeros(2)", "import paddle\n"),
    ("from torch import zeros\n", "zeros(2)", "import paddle\n"),
    ("from torch import zeros, relu\n", "zeros(2)", "from torch import zeros, relu\nimport paddle\n"),
    ("import torch\nimport torch.nn.functional as F\n", "F.pad(torch.zeros(2), (1, 1))", "import paddle\n"),
    ("import os, torch\n", "torch.zeros(2)", "import os, torch\nimport paddle\n"),
    ("import torch\nimport paddle as p\n", "torch.zeros(2)", "import paddle as p\n"),
    ("import torch\npaddle = 1\n", "torch.zeros(2)", "import paddle as paddle_\npaddle = 1\n"),
]


@pytest.mark.parametrize(("before", "used", "after"), IMPORTS)
def test_imports(before: str, used: str, after: str) -> None:
    source = f"{before}import torch.distributed as dist\ndef f(x):\n    dist.all_reduce(x)\n    return {used}\n"
    text = port(source, "torch", "paddle_3").text.replace("import shim.frontends.paddle_3.distributed as dist\n", "")
    assert text.startswith(f"{after}def f")


FUNCTION = """\
import torch
import torch.distributed as dist
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, group, x: torch.Tensor, other):
        dist.all_reduce(x, group=group)
        ctx.save_for_backward(x)
        return x
    @staticmethod
    def backward(ctx, gradient):
        return None, gradient * ctx.saved_tensors[0], None
"""


def test_autograd_for_paddle_and_back() -> None:
    ported = port(FUNCTION, "torch", "paddle_3")
    assert "class Sum(paddle.autograd.PyLayer):" in ported.text
    assert "return x.clone()\n" in ported.text
    assert "return gradient * ctx.saved_tensor()[0]\n" in ported.text
    assert [entry.rule for entry in ported.entries] == ["gradient-of-input"]  # of other, not of group
    source = FUNCTION.replace("group, x: torch.Tensor,", "x: torch.Tensor, group,").replace(
        "None, gradient * ctx.saved_tensors[0]", "gradient * ctx.saved_tensors[0], None"
    )
    back = port(port(source, "torch", "paddle_3").text.replace("x.clone()", "x"), "paddle_3", "torch")
    assert "class Sum(torch.autograd.Function):" in back.text
    assert "return gradient * ctx.saved_tensors[0], None, None\n" in back.text


@pytest.mark.parametrize("part", ["symbolic(graph, x)", "setup_context(ctx, inputs, output)"])
def test_autograd_with_other_parts_is_left(part: str) -> None:
    source = FUNCTION.replace(
        "    @staticmethod\n    def backward",
        f"    @staticmethod\n    def {part}:\n        pass\n    @staticmethod\n    def backward",
    )
    ported = port(source, "torch", "paddle_3")
    assert "torch.autograd.Function" in ported.text
    assert "saved_tensors" in ported.text
    assert "autograd-class" in [entry.rule for entry in ported.entries]


def test_the_classes_of_autograd_that_call_a_function_with_collectives() -> None:
    source = (
        "import torch\nimport torch.distributed as dist\ndef add(x):\n    dist.all_reduce(x)\n    return x\n"
        "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return add(x.clone())\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g.view(2, 1)\n"
        "class Other(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g\n"
    )
    ported = port(source, "torch", "paddle_3")
    assert "class Sum(paddle.autograd.PyLayer)" in ported.text
    assert "g.view([2, 1])" in ported.text
    assert "class Other(torch.autograd.Function)" in ported.text
    assert [entry.rule for entry in ported.entries] == ["for-model-converter"]


def test_the_import_stands_after_one_of_the_framework_itself() -> None:
    source = "import torchvision\nimport os\nfrom torch import distributed as dist\ndef f(x):\n    dist.all_reduce(x)\n    return x.detach()\n"
    text = port(source, "torch", "mindspore").text
    assert text.startswith("import torchvision\nimport os\n")
    assert "dist\nimport mindspore\ndef f" in text
