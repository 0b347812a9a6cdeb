"""MindSpore's primitives, ported to functions that are defined before them: what is written, what is left, and that it computes the same."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from shim.port import Plan, port_source
from shim.port.correspondences.returning import PRIMITIVES

HEAD = "import mindspore.mint.distributed as dist\nimport mindspore.ops as ops\n"


def function(parameters: str = "tensor", rest: str = "", name: str = "all_reduce") -> str:
    return f"\n\ndef {name}({parameters}):\n    result = tensor.copy()\n    dist.all_reduce(result{rest})\n    return result\n\n\n"


MAX = "functools.partial(all_reduce, op=dist.ReduceOp.MAX)"
REWRITES = [
    ("y = ops.AllReduce()(x)  # all", f"{function()}y = all_reduce(x)  # all"),
    ("f = ops.AllReduce('max', 'hccl_world_group')", f"{function('tensor, op', ', op=op')}f = {MAX}"),
    (
        "all_reduce = ops.AllReduce(group=groups[i], op=ops.ReduceOp.MIN)",
        function("tensor, group, op", ", op=op, group=group", "all_reduce_")
        + "all_reduce = functools.partial(all_reduce_, group=groups[i], op=dist.ReduceOp.MIN)",
    ),
    ("x.y = ops.AllReduce()(x.y)\nx.y.f()", f"{function()}x.y = all_reduce(x.y)\nx.y.f()"),
    ("ops.Barrier()()", "\n\ndef barrier():\n    dist.barrier()\n\n\nbarrier()"),
    # one function for all objects
    (
        "if ops.AllReduce()(x): f = ops.AllReduce('max')\na = 1; y = ops.AllReduce()(x); a = 2",
        function("tensor, op=dist.ReduceOp.SUM", ", op=op")
        + f"if all_reduce(x): f = {MAX}\na = 1; y = all_reduce(x); a = 2",
    ),
    (
        "fs = [ops.AllReduce(group=g) for g in groups]\nf = lambda g: ops.AllReduce(group=g)",
        function("tensor, group", ", group=group")
        + "fs = [functools.partial(all_reduce, group=g) for g in groups]\n"
        + "f = lambda g: functools.partial(all_reduce, group=g)",
    ),
]


@pytest.mark.parametrize(("before", "after"), REWRITES)
def test_rewrites(before: str, after: str) -> None:
    ported = port_source(f"{HEAD}{before}\n", Plan("mindspore", "torch"))
    ast.parse(ported.text)
    assert ported.text.startswith("import functools\n" if "partial" in after else "import shim")
    assert ported.text.partition("ops as ops\n")[2] == after + "\n"
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("changed", "no-gradient")] * ("All" in before)


def test_the_function_is_written_as_the_file_is_indented() -> None:
    source = f"{HEAD}class A:\n\tdef f(self, x):\n\t\tself.f = ops.Broadcast(0)\n"
    ported = port_source(source, Plan("mindspore", "torch")).text
    assert "\ndef broadcast(tensors, group_root):\n\tresults" in ported
    assert "\n\tfor result in results:\n\t\tdist.broadcast(result, group_src=group_root)\n" in ported


def test_functions_of_several_primitives_stand_below_each_other() -> None:
    ported = port_source(f"{HEAD}f = ops.AllReduce()\ng = ops.Barrier()\n", Plan("mindspore", "torch")).text
    assert ported.endswith(f"{function()}def barrier():\n    dist.barrier()\n\n\nf = all_reduce\ng = barrier\n")


def test_a_root_in_a_group_that_only_some_objects_have() -> None:
    source = f"{HEAD}f = ops.Broadcast(1)\nh = ops.Broadcast(0, g)\n"
    ported = port_source(source, Plan("mindspore", "paddle_3")).text
    assert "def broadcast(tensors, group_root, group=None):" in ported
    assert "dist.broadcast(result, src=group.ranks[group_root] if group else group_root, group=group)" in ported


def test_an_import_that_nothing_uses_any_more_goes() -> None:
    source = "from mindspore.ops import AllReduce, ReduceOp\n\ndef f():\n    return AllReduce(ReduceOp.MAX)\n"
    ported = port_source(source, Plan("mindspore", "torch")).text
    assert ported.startswith(
        "import functools\nfrom shim.frontends.torch.distributed import ReduceOp\nimport shim.frontends.torch.distributed as dist\n"
    )
    assert "op=ReduceOp.MAX" in ported
    kept = port_source(f"{source}g = AllReduce\n", Plan("mindspore", "torch")).text
    assert kept.startswith("import functools\nfrom mindspore.ops import AllReduce\n")


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("class A: all_reduce = ops.AllReduce()", "needs-a-statement"),
        ("class A:\n    all_reduce = ops.AllReduce()", "needs-a-statement"),  # a function would be a method
        ("def f():\n    from mindspore import ops\n    return ops.AllReduce()", "needs-a-statement"),
        ("y = ops.AllReduce(group=dist.new_group([0]))", "needs-a-statement"),
        ("y = ops.AllReduce(op)", "op-not-known"),
        ("y = ops.AllReduce(group='g')", "group-by-name"),
        ("y = ops.AllReduce(*some)", "unpacked-arguments"),
        ("y = ops.AllReduce().add_prim_attr('index', 0)", "no-equivalent"),
        ("self.f = ops.AllReduce()\nself.f.add_prim_attr('index', 0)\nops.Cast()", "no-equivalent"),
        ("class A(ops.AllReduce): pass", "no-equivalent"),
    ],
)
def test_what_no_function_can_take_the_place_of_is_left(source: str, rule: str) -> None:
    ported = port_source(f"{HEAD}{source}\n", Plan("mindspore", "paddle_3"))
    assert "ops." in ported.text.splitlines()[-1]
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", rule)]


def test_an_object_that_may_get_the_tensors_of_either_framework_is_left() -> None:
    source = f"{HEAD}f = ops.AllReduce()\n"
    ported = port_source(source, Plan("mindspore", "torch", scope="statements"))
    assert ported.text.endswith("f = ops.AllReduce()\n")
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "no-equivalent")]


def test_an_object_that_is_left_keeps_its_op() -> None:
    source = "from mindspore import ops\nreduce = ops.AllReduce(ops.ReduceOp.MAX)\nreduce.add_prim_attr('fusion', 1)\n"
    assert port_source(source, Plan("mindspore", "torch")).text == source


def test_an_op_that_the_target_has_not_is_left() -> None:
    source = f"{HEAD}f = ops.AllReduce(ops.ReduceOp.AVG)\n"
    (entry,) = port_source(source, Plan("mindspore", "paddle_2")).entries
    assert (entry.kind, entry.rule) == ("left", "no-equivalent")
    assert "divide by the size" in entry.advice


PROGRAM = """
from mindspore import ops
from mindspore.communication import get_rank, init, release
from mindspore.mint.distributed import new_group

class Net:
    def __init__(self, group):
        self.sum = ops.AllReduce()
        self.max = ops.AllReduce(ops.ReduceOp.MAX, group=group)
        self.gather = ops.AllGather(group)

    def construct(self, x):
        return self.max(self.sum(x) - x) + self.gather(x)[:3]

def run(mine, parts):
    init()
    rank = get_rank()
    seen = [Net(new_group([0, 1])).construct(mine), mine]
    seen.append(ops.ReduceScatter(op=ops.ReduceOp.PROD)(parts))
    seen += ops.Broadcast(1)((mine, parts))
    seen += [mine, parts]
    reduced = ops.Reduce(1)(mine)
    seen.append(reduced if rank == 1 else 0)
    alone = new_group([1])
    if rank == 1:
        seen += ops.Broadcast(0, alone)((mine,))
        seen.append(ops.Reduce(group=alone, dest_rank=0)(parts))
    ops.Barrier()()
    release()
    return seen
"""


def run(text: str, rank: int) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), names)
    found = names["run"](
        (np.arange(3.0) + 10 * (rank + 1)).view(Tensor), (np.arange(12.0).reshape(4, 3) + rank).view(Tensor)
    )
    return [np.asarray(each) for each in found]


class Tensor(np.ndarray):
    """An array with a method that the tensors of MindSpore have, too."""

    def new_zeros(self, shape: Any) -> np.ndarray:
        return np.zeros(shape, self.dtype).view(Tensor)


@pytest.fixture
def texts() -> list[str]:
    """The program on its own frontend, and ported to each other one."""
    found = [port_source(PROGRAM, Plan("mindspore", target)) for target in ("torch", "paddle_2", "paddle_3")]
    assert {entry.rule for ported in found for entry in ported.entries} == {"no-gradient"}
    return [PROGRAM.replace("from mindspore", "from shim.frontends.mindspore"), *(ported.text for ported in found)]


def test_the_program_has_all_primitives() -> None:
    names = [form.partition("(")[0].rpartition(".")[2] for _, form, *_ in PRIMITIVES["mindspore"]]
    assert not [name for name in names if f"ops.{name}(" not in PROGRAM]


@pytest.mark.ranks(2)
@pytest.mark.filterwarnings("ignore:torch (2.13 renamed|deprecates):FutureWarning")
def test_the_port_computes_the_same(rank: int, texts: list[str]) -> None:
    expected, *others = [run(text, rank) for text in texts]
    assert len(expected) == 8 + 2 * rank
    for found in others:
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
