"""What runs on both frameworks and computes something else: each is written for the target, or reported."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from shim.port import Plan, Ported, port_source

HEAD = "import {0}\nimport {0}.distributed as dist\n"


def port(body: str, one: str, other: str, signature: str = "x, y, n: int", after: str = "") -> Ported:
    source = HEAD.format("paddle" if one == "paddle_3" else one)
    if one == "mindspore":
        source = "import mindspore\nimport mindspore.mint.distributed as dist\n"
    source += f"def f({signature}):\n    dist.broadcast(x, 0)\n    dist.broadcast(y, 0)\n    {body}\n{after}"
    return port_source(source, Plan(one, other, scope="statements"))


def written(ported: Ported) -> str:
    return ported.text.partition("dist.broadcast(y, 0)\n")[2].strip()


def told(ported: Ported) -> list[tuple[str, str, int]]:
    return [(entry.kind, entry.rule, entry.line) for entry in ported.entries]


# arrays

BODY = 6  # the line of the body


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("torch", "paddle_3"),
        ("torch", "paddle_2"),
        ("paddle_3", "torch"),
        ("mindspore", "paddle_3"),
        ("paddle_3", "mindspore"),
    ],
)
@pytest.mark.parametrize("line", ["a = x.{}()", "a = x.{}()[0]", "return n, x.{}()", "g(x.{}().reshape(2, 1))"])
def test_arrays_that_share_the_tensors_memory(one: str, other: str, line: str) -> None:
    ported = port(line.format("asnumpy" if one == "mindspore" else "numpy"), one, other)
    assert told(ported) == [("changed", "numpy-memory", BODY)]


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        ("torch", "mindspore", "a = x.numpy()"),
        ("mindspore", "torch", "a = x.asnumpy()"),
        ("paddle_2", "paddle_3", "a = x.numpy()"),
        ("torch", "paddle_3", "a = x.numpy().copy()"),
        ("torch", "paddle_3", "a = x.numpy().tolist()"),
        ("torch", "paddle_3", "a = float(x.numpy().sum())"),
        ("torch", "paddle_3", "a = x.numpy() + 1"),
        ("torch", "paddle_3", "a = n < x.numpy()"),
        ("torch", "paddle_3", "a = n.numpy()"),
        ("torch", "paddle_3", "a = x.clone().cpu().numpy()"),
        ("torch", "paddle_3", "a = (x * n).numpy()"),
    ],
)
def test_arrays_of_which_nothing_is_kept_and_frameworks_that_agree(one: str, other: str, line: str) -> None:
    assert not told(port(line, one.replace("paddle_2", "paddle_3"), other))


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("framework", "make"), [("torch", "tensor"), ("mindspore", "Tensor"), ("paddle", "to_tensor")])
def test_arrays_are_copies_in_paddle_alone(framework: str, make: str) -> None:
    x = getattr(importlib.import_module(framework), make)(np.zeros(4, dtype=np.float32))
    array = x.asnumpy() if framework == "mindspore" else x.numpy()
    x[0] = 7.0
    assert float(x[0]) == 7.0
    assert float(array[0]) == (0.0 if framework == "paddle" else 7.0)


# operators in place


@pytest.mark.parametrize("other", ["paddle_3", "mindspore"])
@pytest.mark.parametrize("signature", ["x, y, n: int", "x: torch.Tensor, y: torch.Tensor, n: int"])
def test_operators_on_the_variables_of_loops(other: str, signature: str) -> None:
    ported = port("for t in [x, y]:\n        t *= n", "torch", other, signature)
    assert written(ported) == "for t in [x, y]:\n        t.copy_(t * n)"
    ported = port("a = [x, y]\n    for t in a: t *= 2\n    a[0] += 1", "torch", other, signature)
    assert written(ported) == "a = [x, y]\n    for t in a: t.copy_(t * 2)\n    a[0].copy_(a[0] + 1)"
    assert not ported.entries
    assert told(port("for t in [x, n.a]: t *= 2", "torch", other)) == [("left", "may-be-tensor", BODY)]


CHANGING = [
    ("def add(t, n=0):\n    t += 1\n    n += 1\n", 1),
    ("def add(t, n=0):\n    n += 1\n    u = t\n    u += 1\n", 3),
    ("def add(ts, n=0):\n    for t in ts:\n        t *= 2\n", 2),
    ("def add(ts, n=0):\n    for i, t in enumerate(ts):\n        t *= 2\n", 2),
    ("def add(t, n=0):\n    u = t.view(-1)\n    u += 1\n", 2),
    ("def add(t, n=0):\n    other(t)\ndef other(u):\n    u -= 1\n", 3),
]


@pytest.mark.parametrize(("one", "other"), [("torch", "paddle_3"), ("torch", "mindspore"), ("paddle_3", "torch")])
@pytest.mark.parametrize(("function", "line"), CHANGING)
@pytest.mark.parametrize("call", ["add(x)", "add(x, n)", "add([x, y])", "add(n=n, t=x)"])
def test_functions_of_the_file_that_change_an_argument(
    function: str, line: int, call: str, one: str, other: str
) -> None:
    if "ts" in function:
        call = call.replace("t=x", "ts=[x]")
    ported = port(call, one, other, after=function)
    assert told(ported) == [("left", "may-be-tensor", BODY + 1 + line)]
    assert ported.text.endswith(function)


def test_methods_that_change_an_argument() -> None:
    source = (
        HEAD.format("torch")
        + "class A:\n    def add(self, t):\n        t += 1\n    def f(self, x):\n        dist.all_reduce(x)\n        self.add(x)\n"
    )
    assert told(port_source(source, Plan("torch", "paddle_3", scope="statements"))) == [("left", "may-be-tensor", 5)]


@pytest.mark.parametrize(
    "function",
    [
        "def add(t, n=0):\n    n += 1\n",
        "def add(t, n=0):\n    t[0] += 1\n",
        "def add(t, n=0):\n    m = t.shape[0]\n    m += 1\n",
        "def add(t, n=0):\n    t = t + 1\n",
        "def add(t: list, n=0):\n    k = 0\n    k += 1\n",
    ],
)
def test_functions_of_the_file_that_change_no_tensor(function: str) -> None:
    assert not told(port("add(x, n)", "torch", "paddle_3", after=function))
    assert not told(port("add(n)", "torch", "paddle_3", after="def add(n):\n    n += 1\n"))
    assert told(port("add(n.x)", "torch", "paddle_3", after="def add(n):\n    n += 1\n"))
    assert not told(port("add(n.x)", "torch", "paddle_3", after="def add(n):\n    n += 'a'\n"))


def test_elements_of_lists_that_a_function_changes() -> None:
    function = "def add(ts):\n    ts[0] += 1\n"
    assert told(port("add([x, y])", "torch", "paddle_3", after=function)) == [("left", "may-be-tensor", BODY + 2)]
    assert not told(port("add(x)", "torch", "paddle_3", after=function))


# sums

SMALL = ["uint8", "int8", "int16"]
SUMS = [
    ("torch.full((300,), 100, dtype=torch.{0})", "{1}.sum(dtype=paddle.int64)"),
    ("x.to(torch.{0})", "{1}.sum(dtype=paddle.int64)"),
    ("torch.zeros(2, dtype=torch.{0}).view(-1)", "{1}.sum(dtype=paddle.int64)"),
    ("torch.zeros(2, dtype=torch.{0})[1:]", "{1}.sum(dtype=paddle.int64)"),
    ("x.to(torch.{0}).masked_fill(x > 1, 2)", "{1}.sum(dtype=paddle.int64)"),
    ("x.to(torch.{0}).masked_fill_(x > 1, 2)", "{1}.sum(dtype=paddle.int64)"),
    ("x.to(torch.zeros(2, dtype=torch.{0}).dtype)", "{1}.sum(dtype=paddle.int64)"),
    ("(-torch.zeros(2, dtype=torch.{0}))", "{1}.sum(dtype=paddle.int64)"),
    ("(x.to(torch.{0}) + x.to(torch.{0}))", "{1}.sum(dtype=paddle.int64)"),
    ("[torch.zeros(2, dtype=torch.{0}) for _ in range(n)][0]", "{1}.sum(dtype=paddle.int64)"),
]


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("made", [made for made, _ in SUMS])
def test_sums_of_small_integers_are_int64_in_paddle(made: str, dtype: str) -> None:
    made = made.format(dtype)
    direct = port(f"a = {made}.sum()", "torch", "paddle_3")
    kept = port(f"z = {made}\n    a = z.sum(0)", "torch", "paddle_3")
    assert written(direct).endswith(".sum(dtype=paddle.int64)")
    assert written(kept).endswith("z.sum(0, dtype=paddle.int64)")
    assert not direct.entries + kept.entries
    there = made.replace("torch.", "mindspore.mint.", 1).replace("torch.", "mindspore.")
    assert "x." in made or written(port(f"a = {there}.sum()", "mindspore", "paddle_3")).endswith(
        "sum(dtype=paddle.int64)"
    )


@pytest.mark.parametrize("other", ["torch", "mindspore"])
def test_sums_of_small_integers_stay_small_from_paddle(other: str) -> None:
    ported = port("z = paddle.full([300], 100, dtype='uint8')\n    a = z.sum()", "paddle_3", other)
    assert written(ported).endswith(f"z.sum(dtype={other}.uint8)")


@pytest.mark.parametrize(
    "made",
    [
        "x",
        "torch.zeros(2)",
        "x.to(torch.uint8) * 1.5",
        "x.to(torch.uint8) / 2",
        "x + x.to(torch.uint8)",
        "torch.zeros(2, dtype=torch.int32)",
        "x.to(torch.bool)",
        "x > 0",
    ],
)
def test_other_sums(made: str) -> None:
    assert written(port(f"a = ({made}).sum()", "torch", "paddle_3")).endswith(").sum()")


def dtype_of_sum(framework: str, dtype: str) -> str:
    module: Any = importlib.import_module(framework)
    make = {"torch": "tensor", "mindspore": "Tensor", "paddle": "to_tensor"}[framework]
    x = getattr(module, make)(np.ones(3, dtype=dtype))
    return str(x.sum().dtype).rpartition(".")[2].lower()


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("framework", ["torch", "mindspore", "paddle"])
def test_dtypes_of_sums(framework: str) -> None:
    for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64"):
        small = framework == "paddle" and dtype in SMALL
        assert dtype_of_sum(framework, dtype) == (dtype if small else "int64")


# formats


@pytest.mark.parametrize("one", ["torch", "paddle_3"])
def test_formats_of_tensors_are_those_of_their_numbers(one: str) -> None:
    ported = port('print(f"{x[0]:.1f} {n:3} {x} {x!r:>9} {x + y:.{n}f} {x.sum().item():g}")', one, "mindspore")
    assert written(ported) == 'print(f"{x[0].item():.1f} {n:3} {x} {x!r:>9} {(x + y).item():.{n}f} {x.sum().item():g}")'
    assert not ported.entries
    assert told(port('print(f"{x[0]=:.1f}")', one, "mindspore")) == [("left", "tensor-function", BODY)]
    same = 'print(f"{x[0]:.1f} {x[0]=:.1f}")'
    assert written(port(same, one, "torch" if one == "paddle_3" else "paddle_3")) == same


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
def test_mindspore_refuses_to_format_a_tensor() -> None:
    with pytest.raises(TypeError, match="format string"):
        f"{importlib.import_module('mindspore').Tensor(1.5):.1f}"
    assert f"{importlib.import_module('paddle').to_tensor(1.5):.1f}" == "1.5"


# texts of dtypes

TEXTS = [
    "str(torch.float32)",
    "str(x.dtype)",
    "repr(x.dtype)",
    "format(x.dtype)",
    "'{}'.format(x.dtype)",
    "f'{x.dtype}'",
]


@pytest.mark.parametrize("other", ["paddle_3", "mindspore"])
def test_texts_of_dtypes_are_told(other: str) -> None:
    for text in TEXTS:
        assert told(port(f"a = {text}", "torch", other)) == [("changed", "text-of-dtype", BODY)], text
    assert not told(port("a = x.dtype == torch.float32, str(n), f'{n}'", "torch", other))


def test_calls_of_format_get_numbers_in_mindspore() -> None:
    code = "a = '{:.3f} {}'.format(x.sum(), n), format(x + y, '.2f'), '{}'.format(x), format(x)"
    after = "a = '{:.3f} {}'.format(x.sum().item(), n), format((x + y).item(), '.2f'), '{}'.format(x), format(x)"
    assert written(port(code, "torch", "mindspore")) == after
    assert written(port(code, "torch", "paddle_3")) == code


@pytest.mark.parametrize("other", ["paddle_3", "mindspore"])
def test_what_a_method_in_place_gets_is_ported_within_it(other: str) -> None:
    ported = port("x.mul_(torch.ones(3))\n    x.add_((y == torch.tensor([1, 2, 3])).sum())", "torch", other)
    assert "torch." not in ported.text.replace("frontends.torch", "")
    assert not [entry for entry in ported.entries if entry.kind == "left"]


# copies


@pytest.mark.parametrize(
    ("code", "paddle", "mindspore"),
    [
        ("x.copy_(y)", "x.copy_(y.expand(x.shape))", "x.copy_(y.copy())"),
        ("x.copy_(y + y)", "x.copy_((y + y).expand(x.shape))", "x.copy_(y + y)"),
        ("x.copy_(x * 2)", "x.copy_(x * 2)", "x.copy_(x * 2)"),
        ("x.copy_(y.view(x.shape))", "x.copy_(y.view(x.shape))", "x.copy_(y.view(x.shape).copy())"),
        ("x.view(-1).copy_(y)", "x.view([-1]).copy_(y)", "x.view(-1).copy_(y.copy())"),
    ],
)
def test_a_copy_keeps_the_shape_of_what_it_writes_into(code: str, paddle: str, mindspore: str) -> None:
    assert written(port(code, "torch", "paddle_3")) == paddle
    assert written(port(code, "torch", "mindspore")) == mindspore


@pytest.mark.frameworks
@pytest.mark.ranks(1)
@pytest.mark.filterwarnings("ignore")
def test_paddles_copy_takes_the_others_shape() -> None:
    paddle: Any = importlib.import_module("paddle")
    for dtype in ("bool", "uint8", "int16", "float16", "float32", "int64"):
        x, y = (paddle.ones(shape).astype(dtype) for shape in ([2, 2], [2]))
        assert x.copy_(y.expand(x.shape)).shape == [2, 2]
        assert x.copy_(y).shape == [2]
