"""Modules, handles and results that a program keeps, backends in variables, and variables of a launcher: they are ported, or reported where the
target's are others.
"""

from __future__ import annotations

import pytest

from shim.port import Plan, port_source

HEADS = {
    "torch": "import torch.distributed as dist\n",
    "paddle_2": "import paddle.distributed as dist\n",
    "paddle_3": "import paddle.distributed as dist\n",
    "mindspore": "import mindspore.mint.distributed as dist\n",
}

REPORTED = [
    ("torch", "paddle_3", "reduce(t, dist)", "module-as-value"),
    ("torch", "paddle_3", "comm = dist", "module-as-value"),
    ("torch", "paddle_3", "def f(g: 'dist.ProcessGroup'): ...\ncomm = dist", "module-as-value"),
    ("paddle_2", "paddle_3", "class A:\n    def __init__(self):\n        self.dist = dist", "module-as-value"),
    ("torch", "mindspore", "def f(dist=dist): ...", "module-as-value"),
    ("paddle_2", "paddle_3", "import paddle\nP = paddle\nP.distributed.alltoall(a, b)", "module-as-value"),
    ("torch", "paddle_3", "d = importlib.import_module('torch.distributed')", "name-at-run-time"),
    ("torch", "paddle_3", "d = sys.modules['torch.distributed']", "name-at-run-time"),
    ("torch", "paddle_3", "@mock.patch('torch.distributed.get_rank')\ndef f(): ...", "name-at-run-time"),
    ("paddle_2", "paddle_3", "eval('dist.alltoall(a, b)')", "name-at-run-time"),
    ("paddle_3", "torch", "if hasattr(dist, 'communication'): ...", "no-equivalent"),
    ("mindspore", "torch", "for op in ('sum', 'max'):\n    dist.all_reduce(t, op=op)", "op-not-known"),
    (
        "torch",
        "mindspore",
        "w = None\nw = dist.isend(t, 1) if t else ['x']\nw = dist.isend(t, 1)\nw.is_completed()",
        "handle-member",
    ),
    ("torch", "mindspore", "libraries = {'torch': dist}", "module-as-value"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=True)\nw.get_future()", "handle-member"),
    ("torch", "mindspore", "w = dist.isend(t, 1)\nwhile not w.is_completed(): ...", "handle-member"),
    (
        "paddle_3",
        "torch",
        "works = []\nworks.append(dist.all_reduce(t, sync_op=False))\nworks[0].is_sync()",
        "handle-member",
    ),
    ("torch", "paddle_3", "sender = dist.recv(t, 1)", "result-used"),
    ("torch", "mindspore", "assert dist.isend(t, 1).wait()", "result-used"),
    ("torch", "paddle_3", "done = dist.all_reduce(t)", "result-used"),
    ("paddle_2", "torch", "task = dist.all_reduce(t, group=g)\ntask.wait()", "result-used"),
    ("paddle_3", "mindspore", "dist.broadcast(t, 0).wait()", "result-used"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=False)\nf(w)", "result-used"),
    ("mindspore", "paddle_2", "w = dist.all_reduce(t, async_op=k)\nprint(w is None)", "result-used"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=k)\nif w is not None: works.append(w)", "result-used"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=k)\nif not w:\n    f()", "result-used"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=k)\nif w:\n    w.wait()\nelse:\n    f()", "result-used"),
    ("torch", "paddle_3", "def f(k): return dist.all_reduce(t, async_op=k)\nx = 1 if f(1) else 2", "result-used"),
    ("torch", "paddle_2", "w = None\nif k:\n    w = dist.all_reduce(t, async_op=k)\nassert w", "result-used"),
    ("paddle_3", "torch", "dist.all_reduce(t, sync_op=k).wait()", "result-used"),
    ("paddle_2", "mindspore", "w = dist.all_reduce(t, sync_op=k)\nf()\nw.wait()", "result-used"),
    ("paddle_3", "torch", "g = dist.new_group([0])\nprint(r in g.ranks)", "group-of-others"),
    ("paddle_3", "mindspore", "g = dist.new_group([0])\nprint(r not in g.ranks)", "group-of-others"),
    ("torch", "paddle_3", "op = getattr(dist.ReduceOp, name)", "name-at-run-time"),
    ("torch", "mindspore", "dist.init_process_group(backend)", "argument-without-effect"),
    ("mindspore", "torch", "dist.init_process_group('hccl', rank=r)", "argument-without-effect"),
]


@pytest.mark.parametrize(("one", "other", "source", "rule"), REPORTED)
def test_what_differs_is_reported(one: str, other: str, source: str, rule: str) -> None:
    ported = port_source(f"{HEADS[one]}{source}\n", Plan(one, other))
    assert [entry.rule for entry in ported.entries] == [rule]
    assert ported.entries[0].line > 1


SILENT = [
    ("torch", "paddle_3", "if dist is None or not dist: ..."),
    ("torch", "torch", "reduce(t, dist)"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=True)\nwhile not w.is_completed(): ..."),
    ("torch", "mindspore", "w = dist.all_reduce(t, async_op=True)\nw.wait()\nw = other()\nw.result()"),
    ("torch", "paddle_3", "dist.recv(t, 1)"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=k)\nif w is not None:\n    w.wait()"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=k)\nif w: w.wait()"),
    ("torch", "paddle_3", "if k:\n    if t:\n        f()\n    for _ in t: ..."),
    ("torch", "mindspore", "w = dist.all_reduce(t, async_op=k)\nprint(w is None)"),
    ("torch", "paddle_3", "w = dist.all_reduce(t, async_op=True)\nprint(w is None)"),
    ("paddle_3", "torch", "w = dist.all_reduce(t, sync_op=k)\nif not k:\n    w.wait()"),
    ("paddle_2", "torch", "w = dist.all_reduce(t, sync_op=False)\nw.wait()"),
    ("paddle_2", "paddle_3", "w = dist.all_reduce(t, sync_op=k)\nw.wait()"),
    ("torch", "paddle_3", "def f(flag):\n    return dist.all_reduce(t, async_op=flag)"),
    ("torch", "mindspore", "done = dist.all_reduce(t)"),
    ("paddle_2", "paddle_3", "task = dist.all_reduce(t)"),
    ("paddle_3", "torch", "task = dist.all_reduce(t, dist.ReduceOp.SUM, None, False)"),
    ("paddle_2", "paddle_3", "g = dist.new_group([0])\nprint(r in g.ranks)"),
    ("paddle_3", "torch", "g = dist.new_group([0])\nprint(g.ranks[0], r in members, g.ranks == members)"),
    ("paddle_3", "torch", "OPS = {'sum': dist.ReduceOp.SUM}\nfor op in OPS.values():\n    dist.all_reduce(t, op=op)"),
    ("paddle_3", "torch", "def f(op=dist.ReduceOp.SUM):\n    dist.all_reduce(t, op)"),
    ("paddle_3", "paddle_2", "dist.all_reduce(t, op)"),
    ("torch", "torch", "dist.init_process_group(backend)"),
    ("torch", "paddle_3", "import torch\nxp = torch\nxp.ones(1)"),
    (
        "torch",
        "paddle_3",
        "import torch\ndef f(g: Optional['torch.distributed.ProcessGroup'], h: 'torch.distributed.ProcessGroup'): ...",
    ),
    (
        "torch",
        "paddle_3",
        "log('torch.distributed is not there')\nrun(['-m', 'torch.distributed.run'])\neval('x.f(1)')",
    ),
]


@pytest.mark.parametrize(("one", "other", "source"), SILENT)
def test_what_is_the_same_is_not_reported(one: str, other: str, source: str) -> None:
    assert not port_source(f"{HEADS[one]}{source}\n", Plan(one, other)).entries


# What Paddle 3 has as Paddle 2 had it.
SAME = [
    "env = dist.ParallelEnv()",
    "dist.spawn(f, nprocs=2)",
    "dist.wait(t)",
    "dist.stream.all_reduce(t, use_calc_stream=True)",
    "dist.stream.alltoall(a, b)",
    "f = dist.stream.alltoall_single",
    "g = dist.new_group([0])\ng.is_member()",
    "dist.all_gather(a, t)",
]


@pytest.mark.parametrize("source", SAME)
def test_what_both_versions_have_stays(source: str) -> None:
    for one, other in (("paddle_2", "paddle_3"), ("paddle_3", "paddle_2")):
        ported = port_source(f"{HEADS[one]}{source}\n", Plan(one, other))
        assert ported.text == f"import shim.frontends.{other}.distributed as dist\n{source}\n"
        assert not ported.entries
        native = port_source(f"{HEADS[one]}{source}\n", Plan(one, other, onto="native"))
        assert (native.text, [*native.entries]) == (f"{HEADS[one]}{source}\n", [])


def test_a_private_function_becomes_the_public_one() -> None:
    ported = port_source(f"{HEADS['paddle_2']}dist._reduce_scatter_base(a, b)\n", Plan("paddle_2", "paddle_3"))
    assert ported.text.splitlines()[1] == "dist.stream.reduce_scatter(a, b)"


def test_all_that_changes_in_paddles_own_code_are_the_calls_in_another_order() -> None:
    source = "import paddle\nimport paddle.distributed as dist\nfrom paddle.distributed import fleet\n"
    source += "fleet.init()\nmodel = paddle.DataParallel(model)\ndist.{}\n"
    ported = port_source(source.format("alltoall(a, b)"), Plan("paddle_2", "paddle_3", onto="native"))
    assert ported.text == source.format("alltoall(in_tensor_list=a, out_tensor_list=b)")
    assert not ported.entries
    ported = port_source(source.format("barrier()"), Plan("paddle_2", "paddle_3"))
    assert [entry.rule for entry in ported.entries] == ["no-equivalent", "no-equivalent", "communicates-itself"]


WRITTEN = {
    "an op in a string beside functions imported by name": (
        "mindspore",
        "torch",
        "from mindspore.mint.distributed import all_reduce\nall_reduce(t, op='max')\n",
        "from shim.frontends.torch.distributed import ReduceOp, all_reduce\nall_reduce(t, op=ReduceOp.MAX)\n",
    ),
    "a class out of a module whose other names are elsewhere": (
        "paddle_3",
        "mindspore",
        "import paddle.distributed as dist\nfrom paddle.distributed.collective import Group\n\ndef f(g: Group):\n    dist.barrier(g)\n",
        "import shim.frontends.mindspore.mint.distributed as dist\n\ndef f(g: str):\n    dist.barrier(g)\n",
    ),
    "a backend that only the source has": (
        "mindspore",
        "torch",
        "import mindspore.mint.distributed as dist\ndist.init_process_group(backend='hccl')\n",
        "import shim.frontends.torch.distributed as dist\ndist.init_process_group()\n",
    ),
}


@pytest.mark.parametrize(("one", "other", "before", "after"), WRITTEN.values(), ids=WRITTEN)
def test_the_port_writes(one: str, other: str, before: str, after: str) -> None:
    assert port_source(before, Plan(one, other)).text == after


READS = """\
import os
from os import environ, getenv
import torch.distributed as dist
dist.init_process_group()
device = int(os.environ["LOCAL_RANK"])
size = environ.get("LOCAL_WORLD_SIZE", "1") + getenv("WORLD_SIZE")
os.environ.setdefault("MASTER_PORT", "29500")
started = "TORCHELASTIC_RUN_ID" in os.environ
"""


def _reported(source: str, plan: Plan) -> list[tuple[int, str, str]]:
    return [
        (entry.line, entry.why.partition(" ")[0], entry.advice)
        for entry in port_source(source, plan).entries
        if entry.rule == "launcher-variable"
    ]


def test_each_is_reported_with_what_the_target_calls_it() -> None:
    other = "Ask the API, such as get_rank, or set the variable where you start the program."
    assert _reported(READS, Plan("torch", "paddle_3", onto="native")) == [
        (5, "LOCAL_RANK", "Use PADDLE_LOCAL_RANK."),
        (6, "LOCAL_WORLD_SIZE", "Use PADDLE_LOCAL_SIZE."),
        (6, "WORLD_SIZE", "Use PADDLE_TRAINERS_NUM."),
        (7, "MASTER_PORT", other),
        (8, "TORCHELASTIC_RUN_ID", other),
    ]
    assert (6, "LOCAL_WORLD_SIZE", other) in _reported(READS, Plan("torch", "mindspore", onto="native"))


@pytest.mark.parametrize(
    "plan", [Plan("torch", "paddle_3"), Plan("torch", "mindspore"), Plan("paddle_2", "paddle_3", onto="native")]
)
def test_shim_run_sets_them_all(plan: Plan) -> None:
    assert _reported(READS.replace("torch.", "paddle.") if plan.source == "paddle_2" else READS, plan) == []


def test_other_variables_and_other_dictionaries_are_none() -> None:
    source = 'import os\nimport torch.distributed as dist\ndist.barrier()\nos.environ["HOME"], {}.get("RANK"), "RANK" in ()\n'
    assert _reported(source, Plan("torch", "paddle_3", onto="native")) == []
