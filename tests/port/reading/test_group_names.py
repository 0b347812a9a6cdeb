"""Names and strings that stand for groups and ops, ported where they stand for the same, and reported where they do not."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, port_source

REWRITES = [
    # an op by a module that has much else: its import stays, and the target's is written
    ("mindspore", "from mindspore import ops\nimport mindspore.mint.distributed as dist\ndist.all_reduce(x, ops.ReduceOp.MAX)",
     "from mindspore import ops\nimport shim.frontends.torch.distributed as dist\ndist.all_reduce(x, dist.ReduceOp.MAX)"),
    ("mindspore", "import mindspore.ops as P\nfrom mindspore.mint.distributed import all_reduce\nall_reduce(x, P.ReduceOp.MAX)",
     "import mindspore.ops as P\nimport shim.frontends.torch.distributed as dist\n"
     "from shim.frontends.torch.distributed import all_reduce\nall_reduce(x, dist.ReduceOp.MAX)"),
    # the world
    ("mindspore", "import mindspore.communication as c\nr = c.get_rank('hccl_world_group')",
     "import shim.frontends.torch.distributed as c\nr = c.get_rank(None)"),
    ("mindspore", "import mindspore.communication as c\nr = c.get_local_rank(c.GlobalComm.WORLD_COMM_GROUP)",
     "import shim.frontends.torch.distributed as c\nr = c.get_node_local_rank()"),
    ("mindspore", "from mindspore.communication import GlobalComm\nif not GlobalComm.INITED: start()",
     "from shim.frontends.torch.distributed import is_initialized\nif not is_initialized(): start()"),
    ("paddle_3", "import paddle.distributed as dist\ng = dist.get_group(id=0)",
     "import shim.frontends.torch.distributed as dist\ng = dist.group.WORLD"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "before", "after"), REWRITES)
def test_what_stands_for_the_same_is_ported(source: str, before: str, after: str) -> None:
    ported = port_source(before + "\n", Plan(source, "torch"))
    ast.parse(ported.text)
    assert ported.text == after + "\n"
    assert not ported.entries


@pytest.mark.parametrize("group", ["'g'", "name", "f'g{i}'"])
@pytest.mark.parametrize("target", ["torch", "paddle_3"])
def test_a_group_by_its_name_is_left(group: str, target: str) -> None:
    source = f"import mindspore.communication as c\nname = 'g'\nr = c.get_rank({group})\n"
    ported = port_source(source, Plan("mindspore", target))
    assert ported.text.splitlines()[-1] == source.splitlines()[-1]
    assert [(entry.line, entry.kind, entry.rule) for entry in ported.entries] == [(3, "left", "group-by-name")]


ASKED = [
    ("torch", "from torch.distributed import get_process_group_ranks, barrier\nr = get_process_group_ranks(g)\nbarrier()",
     "from shim.frontends.paddle_3.distributed import barrier\nr = g.ranks\nbarrier()"),
    ("mindspore", "from mindspore.communication import get_group_rank_from_world_rank as f\nr = f(3, g)", "r = g.get_group_rank(3)"),
    ("mindspore", "import mindspore.communication as c\nr = c.get_group_rank_from_world_rank(world_rank_id=(i), group=g)",
     "import shim.frontends.paddle_3.distributed as c\nr = g.get_group_rank(i)"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "before", "after"), ASKED)
def test_an_import_goes_whose_function_became_a_member_of_the_group(source: str, before: str, after: str) -> None:
    ported = port_source(before + "\n", Plan(source, "paddle_3"))
    assert ported.text == after + "\n"
    assert not ported.entries


@pytest.mark.parametrize("arguments", ["f(), g", "3, get(g)", "3, None", "*both"])
def test_a_rank_and_a_group_that_cannot_change_places_are_left(arguments: str) -> None:
    source = f"import mindspore.communication as c\nr = c.get_group_rank_from_world_rank({arguments})\n"
    ported = port_source(source, Plan("mindspore", "paddle_3"))
    assert ported.text.splitlines()[-1] == source.splitlines()[-1]
    assert [(entry.line, entry.kind) for entry in ported.entries] == [(2, "left")]
