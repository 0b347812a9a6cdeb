"""MindSpore's functions that return a new tensor, ported to functions that fill one: what is written, what is left, and that it computes the same."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from shim.port import Plan, Ported, port_source
from shim.port.correspondences.returning import RETURNING

HEAD = "from mindspore.communication import comm_func as cf\n"
WRITTEN = "import shim.frontends.{}.distributed as cf\n"


def port(source: str, target: str) -> Ported:
    ported = port_source(HEAD + source, Plan("mindspore", target))
    ast.parse(ported.text)
    return ported


REWRITES = [
    ("y, _ = cf.all_reduce(x, 'max')", "y = x.copy()\ncf.all_reduce(y, cf.ReduceOp.MAX)"),
    ("y = cf.all_reduce(x + 1, group=g)[0]", "y = (x + 1).copy()\ncf.all_reduce(y, group=g)"),
    ("y, h = cf.all_reduce(x, async_op=True)", "y = x.copy()\nh = cf.all_reduce(y, async_op=True)"),
    ("self.y = cf.broadcast(x, 1)  # all", "self.y = x.copy()\ncf.broadcast(self.y, 1)  # all"),
    ("x = cf.recv(x, src=1)", "x = x.copy()\ncf.recv(x, src=1)"),
    (
        "def f(x, result):\n    return cf.all_gather_into_tensor(x, g)[0]",
        "def f(x, result):\n    result_ = x.new_zeros([cf.get_world_size(g) * x.shape[0], *x.shape[1:]])\n"
        "    cf.all_gather_single(result_, x, g)\n    return result_",
    ),
    (
        "y, _ = cf.reduce_scatter_tensor(tensor=x)",
        "y = x.new_zeros([x.shape[0] // cf.get_world_size(), *x.shape[1:]])\ncf.reduce_scatter_single(input=x, output=y)",
    ),
    (
        "y, _ = cf.all_to_all_single_with_output_shape((3, 4), x, a, b)",
        "y = x.new_zeros((3, 4))\ncf.all_to_all_single(y, x, a, b)",
    ),
    (
        "y, _ = cf.all_to_all_single_with_output_shape(s, x)",
        'y = x.new_zeros(getattr(s, "shape", s))\ncf.all_to_all_single(y, x)',
    ),
    ("cf.send(x)", "cf.send(x, dst=0)"),
    ("cf.barrier()", "cf.barrier()"),
]


@pytest.mark.parametrize(("before", "after"), REWRITES)
def test_rewrites(before: str, after: str) -> None:
    ported = port(before + "\n", "torch")
    assert ported.text == WRITTEN.format("torch") + after + "\n"
    gradients = any(name in before for name in ("all_", "broadcast", "reduce"))
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("changed", "no-gradient")] * gradients


@pytest.mark.parametrize(
    "source",
    [
        "y = cf.all_reduce(x)",  # a pair
        "use(cf.broadcast(x))",
        "y = z = cf.broadcast(x)",
        "x, _ = cf.all_gather_into_tensor(x)",  # the output is made before the input is read
        "y, _ = cf.all_gather_into_tensor(f(x))",  # called twice
        "y, _ = cf.all_reduce(x, group=groups[y])",
        "y = cf.broadcast(cf.broadcast(x))",
        "a = 1; y = cf.broadcast(x)",
    ],
)
def test_what_cannot_be_taken_apart_is_left(source: str) -> None:
    ported = port(source + "\n", "torch")
    assert ported.text.splitlines()[-1] == source
    assert {(entry.line, entry.kind, entry.rule) for entry in ported.entries} == {(2, "left", "needs-a-statement")}


def test_the_same_framework_keeps_its_functions() -> None:
    ported = port("y, _ = cf.all_reduce(x)\n", "mindspore")
    assert "from shim.frontends.mindspore.communication.comm_func import all_reduce\n" in ported.text
    assert ported.text.endswith("y, _ = all_reduce(x)\n")
    assert not ported.entries


PROGRAM = """
from mindspore.communication import comm_func, get_rank, init, release
from mindspore.communication.comm_func import all_reduce, recv

def run(mine, parts, seen):
    init()
    rank = get_rank()
    total, _ = all_reduce(mine, "prod")
    seen += [total * 1, mine * 1]
    total, handle = all_reduce(mine, async_op=True)
    handle.wait()
    seen.append(total)
    seen.append(gathered(mine))
    part, _ = comm_func.reduce_scatter_tensor(parts, op="max")
    seen += [part, parts]
    given = comm_func.broadcast(mine, 1)
    seen += [given, mine]
    reduced = comm_func.reduce(mine, 1)
    seen.append(reduced if rank == 1 else 0)
    exchanged, _ = comm_func.all_to_all_single_with_output_shape((4, 3), parts)
    seen.append(exchanged)
    some = parts[:3]
    exchanged = comm_func.all_to_all_single_with_output_shape(parts[: 2 + 2 * rank], some, [1 + rank] * 2, [1, 2])[0]
    seen.append(exchanged)
    if rank == 0:
        comm_func.send(mine, 1)
        mine = recv(mine, 1)
    else:
        received, handle = comm_func.irecv(mine)
        handle.wait()
        comm_func.send(mine)
        mine = received
    seen.append(mine)
    comm_func.barrier()
    release()
    return seen

def gathered(x):
    return comm_func.all_gather_into_tensor(x)[0]
"""


class Tensor(np.ndarray):
    """An array with a method that the tensors of MindSpore have, too."""

    def new_zeros(self, shape: Any) -> np.ndarray:
        return np.zeros(shape, self.dtype).view(Tensor)


def run(text: str, rank: int) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    mine = (np.arange(3.0) + 10 * (rank + 1)).view(Tensor)
    parts = (np.arange(12.0).reshape(4, 3) * (rank + 1)).view(Tensor)
    return [np.asarray(each) for each in names["run"](mine, parts, [])]


@pytest.fixture
def texts() -> list[str]:
    """The program on its own frontend, and ported to each other one."""
    found = []
    for target in ("mindspore", "torch", "paddle_2", "paddle_3"):
        ported = port_source(PROGRAM, Plan("mindspore", target))
        assert "left" not in {entry.kind for entry in ported.entries}
        found.append(ported.text)
    return found


def test_the_program_has_all_functions() -> None:
    names = [form.partition("(")[0].rpartition(".")[2] for _, _, form, *_ in RETURNING["mindspore"]]
    assert not [name for name in names if f"{name}(" not in PROGRAM]


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch (2.13 renamed|deprecates):FutureWarning")
def test_the_port_computes_the_same(rank: int, texts: list[str]) -> None:
    expected, *others = [run(text, rank) for text in texts]
    assert len(expected) > 10
    for found in others:
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
