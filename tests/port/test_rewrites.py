"""What each rule writes, and what it leaves alone: one short source, and the port of it."""

from __future__ import annotations

import ast
import sys

import pytest

from shim.port import Plan, Ported, port_source

TORCH = "import torch.distributed as dist\n"
PADDLE = "import paddle.distributed as dist\n"
MINDSPORE = "import mindspore.mint.distributed as dist\n"
WRITTEN = {
    "torch": "import shim.frontends.torch.distributed as dist\n",
    "paddle_2": "import shim.frontends.paddle_2.distributed as dist\n",
    "paddle_3": "import shim.frontends.paddle_3.distributed as dist\n",
    "mindspore": "import shim.frontends.mindspore.mint.distributed as dist\n",
}


def port(source: str, one: str, other: str) -> Ported:
    ported = port_source(source, Plan(one, other))
    ast.parse(ported.text)
    return ported


REWRITES = [
    # strings within formatted ones, of either quote
    (
        "torch",
        "mindspore",
        """f"{start(dist.init_process_group('nccl'))}\"""",
        """f"{start(dist.init_process_group('hccl'))}\"""",
    ),
    (
        "torch",
        "mindspore",
        """f'{start(dist.init_process_group("nccl"))}'""",
        """f'{start(dist.init_process_group("hccl"))}'""",
    ),
    # flags, and the order of parameters
    ("torch", "paddle_3", "dist.all_reduce(t, async_op=True)", "dist.all_reduce(t, sync_op=False)"),
    ("torch", "paddle_3", "dist.all_reduce(t, async_op=flag)", "dist.all_reduce(t, sync_op=not flag)"),
    ("torch", "paddle_3", "dist.all_reduce(t, async_op=a or b)", "dist.all_reduce(t, sync_op=not (a or b))"),
    ("torch", "paddle_3", "dist.all_reduce(t, async_op=not a)", "dist.all_reduce(t, sync_op=a)"),
    (
        "paddle_3",
        "torch",
        "dist.all_reduce(t, dist.ReduceOp.PROD, None, False)",
        "dist.all_reduce(t, dist.ReduceOp.PRODUCT, None, True)",
    ),
    ("torch", "paddle_2", "dist.all_to_all_single(o, i)", "dist.alltoall_single(out_tensor=o, in_tensor=i)"),
    (
        "torch",
        "paddle_3",
        "dist.all_to_all_single(o, i, a, b)",
        "dist.alltoall_single(o, i, out_split_sizes=a, in_split_sizes=b)",
    ),
    (
        "paddle_2",
        "paddle_3",
        "dist.alltoall_single(i, o, a, b)",
        "dist.alltoall_single(in_tensor=i, out_tensor=o, in_split_sizes=a, out_split_sizes=b)",
    ),
    (
        "paddle_2",
        "paddle_3",
        "dist.alltoall_single(in_tensor=i, out_tensor=o)",
        "dist.alltoall_single(in_tensor=i, out_tensor=o)",
    ),
    ("paddle_3", "torch", "dist.stream.alltoall_single(o, i, a, b)", "dist.all_to_all_single(o, i, a, b)"),
    # layout and comments stay
    (
        "torch",
        "paddle_3",
        "dist.all_to_all(  # all\n    o,  # out\n    i,\n)",
        "dist.alltoall(  # all\n    o,  # out\n    i,\n)",
    ),
    # names of functions, a tensor or a list
    ("torch", "paddle_3", "dist.all_gather_into_tensor(o, i)", "dist.stream.all_gather(o, i)"),
    ("paddle_3", "torch", "dist.stream.all_gather([a, b], i)", "dist.all_gather([a, b], i)"),
    (
        "paddle_3",
        "torch",
        "o = paddle.empty([4])\ndist.stream.all_gather(o, i)",
        "o = paddle.empty([4])\ndist.all_gather_single(o, i)",
    ),
    # defaults that differ, arguments that have no meaning on the target
    ("torch", "mindspore", "dist.gather(t)", "dist.gather(t, gather_list=[])"),
    (
        "torch",
        "mindspore",
        "dist.gather(t, x if r == 0 else None, 0)",
        "dist.gather(t, (x if r == 0 else None) or [], 0)",
    ),
    ("mindspore", "torch", "dist.gather(t, x, dst=d)", "dist.gather(t, x if dist.get_rank() == d else None, dst=d)"),
    ("torch", "paddle_3", "dist.isend(t, 1, tag=0)", "dist.isend(t, 1)"),
    ("torch", "paddle_3", "dist.recv(t, 1, None, 0)", "dist.recv(t, 1, None)"),
    ("paddle_3", "torch", "dist.send(t, 1, sync_op=False)", "dist.isend(t, 1)"),
    ("mindspore", "torch", "dist.all_reduce(t, 'prod')", "dist.all_reduce(t, dist.ReduceOp.PRODUCT)"),
    ("paddle_3", "torch", "dist.all_reduce(t, op=3)", "dist.all_reduce(t, op=dist.ReduceOp.PRODUCT)"),
    ("torch", "paddle_3", "x = 1\n\fdist.all_reduce(t)", "x = 1\n\fdist.all_reduce(t)"),
    (
        "torch",
        "paddle_2",
        "x = 1\n\fdist.all_to_all(o, i)",
        "x = 1\n\fdist.alltoall(out_tensor_list=o, in_tensor_list=i)",
    ),
    # ranks in a group
    ("torch", "mindspore", "dist.broadcast(t, group_src=0)", "dist.broadcast(t, src=0)"),
    ("torch", "paddle_3", "dist.broadcast(t, group=g, group_src=n)", "dist.broadcast(t, group=g, src=g.ranks[n])"),
    # groups: methods, properties, functions
    (
        "torch",
        "paddle_3",
        "g = dist.new_group([0, 1])\nn = g.size() + g.rank()",
        "g = dist.new_group([0, 1])\nn = g.nranks + g.rank",
    ),
    (
        "paddle_3",
        "mindspore",
        "g = dist.new_group([0, 1])\nn = g.nranks + g.get_group_rank(1)",
        "g = dist.new_group([0, 1])\nn = dist.get_world_size(g) + dist.get_group_rank(g, 1)",
    ),
    ("torch", "paddle_3", "dist.get_global_rank(g, 1)", "g.get_global_rank(1)"),
    ("torch", "paddle_2", "dist.get_global_rank(g, 1)", "g.ranks[1]"),
    ("torch", "mindspore", "dist.barrier(dist.group.WORLD)", "dist.barrier(None)"),
    ("torch", "paddle_3", "dist.new_group([0], None, 'gloo')", "dist.new_group([0], timeout=None, backend='gloo')"),
    # functions as values
    ("torch", "paddle_3", "dist.P2POp(dist.isend, t, 1)", "dist.P2POp(dist.isend, t, 1)"),
    ("torch", "paddle_2", "f = dist.all_to_all\nf(o, i)", "f = dist.alltoall\nf(out_tensor_list=o, in_tensor_list=i)"),
    (
        "torch",
        "paddle_3",
        "functools.partial(dist.all_reduce, async_op=True)",
        "functools.partial(dist.all_reduce, sync_op=False)",
    ),
    ("torch", "mindspore", "dist.init_process_group('nccl')", 'dist.init_process_group("hccl")'),
    # lists that Paddle appends to
    ("torch", "paddle_3", "dist.all_gather_object(o, x)", "o.clear()\ndist.all_gather_object(o, x)"),
    (
        "paddle_3",
        "torch",
        "o = []\ndist.all_gather_object(o, x)",
        "o = []\no.extend([None] * dist.get_world_size())\ndist.all_gather_object(o, x)",
    ),
]


@pytest.mark.parametrize(("one", "other", "before", "after"), REWRITES)
def test_rewrites(one: str, other: str, before: str, after: str) -> None:
    head = {"torch": TORCH, "mindspore": MINDSPORE}.get(one, PADDLE)
    ported = port(head + before + "\n", one, other)
    assert ported.text == WRITTEN[other] + after + "\n"
    assert not [entry for entry in ported.entries if entry.kind == "left"]


LEFT = [
    ("torch", "paddle_3", "dist.send(t, 1, tag=3)", "no-equivalent-argument"),
    ("torch", "paddle_3", "dist.barrier(async_op=True)", "no-equivalent-argument"),
    ("torch", "mindspore", "dist.recv(t)", "any-source"),
    ("torch", "paddle_3", "dist.gather_object(x)", "no-equivalent"),
    ("torch", "paddle_3", "dist.new_subgroups()", "no-equivalent"),
    ("torch", "paddle_3", "dist.all_reduce(*a)", "unpacked-arguments"),
    ("torch", "paddle_3", "dist.all_reduce(t, **options)", "unpacked-arguments"),
    ("torch", "paddle_3", "dist.all_reduce(t, sync_op=True)", "unknown-argument"),
    ("torch", "paddle_3", "getattr(dist, name)(t)", "name-at-run-time"),
    ("torch", "paddle_2", "use(dist.all_to_all_single)", "function-as-value"),
    ("paddle_3", "torch", "dist.stream.all_gather(o, i)", "tensor-or-list"),
    ("paddle_3", "torch", "dist.all_gather_object(o, x)", "list-may-be-empty"),
    ("torch", "paddle_3", "g = dist.new_group()\ng.abort()", "group-member"),
    ("torch", "paddle_2", "dist.all_reduce(t, dist.ReduceOp.AVG)", "no-equivalent"),
    ("torch", "mindspore", "dist.all_reduce(t, dist.ReduceOp.BXOR)", "no-equivalent"),
]


@pytest.mark.parametrize(("one", "other", "source", "rule"), LEFT)
def test_what_is_left_is_as_it_was_and_reported(one: str, other: str, source: str, rule: str) -> None:
    head = PADDLE if one.startswith("paddle") else TORCH
    ported = port(head + source + "\n", one, other)
    assert [entry.rule for entry in ported.entries if entry.kind == "left"] == [rule]
    assert ported.entries[0].line == 1 + len(source.splitlines())
    assert ported.text.splitlines()[-1] == source.splitlines()[-1]


IMPORTS = [
    ("import torch.distributed as dist\n", "import shim.frontends.paddle_3.distributed as dist\n"),
    (
        "from torch import distributed as d\nd.barrier()\n",
        "import shim.frontends.paddle_3.distributed as d\nd.barrier()\n",
    ),
    (
        "from torch import distributed as d, nn\nd.barrier()\n",
        "from torch import nn\nimport shim.frontends.paddle_3.distributed as d\nd.barrier()\n",
    ),
    (
        "import torch.distributed\ntorch.distributed.barrier()\n",
        "import torch\nimport shim.frontends.paddle_3.distributed as dist\ndist.barrier()\n",
    ),
    (
        "import torch\ntorch.distributed.barrier()\n",
        "import torch\nimport shim.frontends.paddle_3.distributed as dist\ndist.barrier()\n",
    ),
    (
        "from torch.distributed import (\n    ReduceOp,  # ops\n    all_reduce,\n)\nall_reduce(t, ReduceOp.SUM)\n",
        "from shim.frontends.paddle_3.distributed import (\n    ReduceOp,  # ops\n    all_reduce,\n)\nall_reduce(t, ReduceOp.SUM)\n",
    ),
    (
        "from torch.distributed import all_to_all\nall_to_all(o, i)\n",
        "from shim.frontends.paddle_3.distributed import alltoall\nalltoall(o, i)\n",
    ),
    (
        "from torch.distributed import all_to_all as a\na(o, i)\n",
        "from shim.frontends.paddle_3.distributed import alltoall as a\na(o, i)\n",
    ),
    (
        "def f(t):\n    import torch.distributed as dist\n    dist.barrier()\n",
        "def f(t):\n    import shim.frontends.paddle_3.distributed as dist\n    dist.barrier()\n",
    ),
    (
        "from shim.frontends.torch.distributed import barrier\nbarrier()\n",
        "from shim.frontends.paddle_3.distributed import barrier\nbarrier()\n",
    ),
    (
        "import os\nimport distributed\ndistributed.barrier()\n",
        "import os\nimport distributed\ndistributed.barrier()\n",
    ),
    ("dist = make()\ndist.all_reduce(t, async_op=True)\n", "dist = make()\ndist.all_reduce(t, async_op=True)\n"),
    ("import torch\nx = torch.zeros(3)\n", "import torch\nx = torch.zeros(3)\n"),
]


@pytest.mark.parametrize(("before", "after"), IMPORTS)
def test_imports(before: str, after: str) -> None:
    ported = port(before, "torch", "paddle_3")
    assert ported.text == after
    assert not ported.entries
    assert port(before.replace("\n", "\r\n"), "torch", "paddle_3").text == after.replace("\n", "\r\n")


def test_names_of_another_module_are_imported_beside_the_first() -> None:
    ported = port(f"{TORCH}dist.all_reduce(t, op=dist.ReduceOp.PRODUCT)\n", "torch", "mindspore")
    assert ported.text == (
        f"{WRITTEN['mindspore']}from shim.frontends.mindspore.ops import ReduceOp\ndist.all_reduce(t, op=ReduceOp.PROD)\n"
    )


def test_native_writes_the_frameworks_own_paths() -> None:
    ported = port_source(f"{TORCH}dist.barrier()\n", Plan("torch", "mindspore", onto="native"))
    assert ported.text == f"{MINDSPORE}dist.barrier()\n"


def test_arguments_without_effect_are_dropped_and_reported() -> None:
    ported = port(f"{TORCH}dist.init_process_group('nccl', rank=r, world_size=2)\n", "torch", "paddle_3")
    assert ported.text == f"{WRITTEN['paddle_3']}dist.init_parallel_env()\n"
    (entry,) = ported.entries  # one for the call
    assert (entry.kind, entry.rule, entry.line) == ("changed", "argument-without-effect", 2)
    assert entry.why.endswith("has no parameter for backend='nccl', rank=r, world_size=2")
    assert entry.advice.count("launcher's variables") == 1


@pytest.mark.parametrize(
    ("api", "source", "rule"),
    [
        ("torch", "from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n", "communicates-itself"),
        ("torch", "import torch\nm = torch.nn.parallel.DistributedDataParallel(m)\n", "communicates-itself"),
        ("torch", "from torch.distributed.fsdp import fully_shard\nfully_shard(m)\n", "no-equivalent"),
        ("torch", "from torch.distributed import *\n", "star-import"),
        ("paddle_3", "import paddle\nm = paddle.DataParallel(m)\n", "communicates-itself"),
        ("mindspore", "import mindspore.ops as ops\nx = ops.AlltoAllV()(x)\n", "no-equivalent"),
        (
            "mindspore",
            "from mindspore.communication.comm_func import gather_into_tensor\nx = gather_into_tensor(x)\n",
            "no-equivalent",
        ),
    ],
)
def test_what_communicates_without_an_equivalent_is_reported(api: str, source: str, rule: str) -> None:
    ported = port(source, api, "torch" if api != "torch" else "paddle_3")
    assert ported.text == source
    assert {(entry.kind, entry.rule) for entry in ported.entries} == {("left", rule)}


def test_an_attribute_is_a_group_in_its_own_class_alone() -> None:
    source = f"{TORCH}class A:\n    def f(self):\n        self.group = dist.new_group([0])\n        return self.group.size()\n"
    source += "class B:\n    def f(self):\n        return self.group.size()\n"
    ported = port(source, "torch", "paddle_3").text
    assert (ported.count("self.group.nranks"), ported.count("self.group.size()")) == (1, 1)


@pytest.mark.parametrize("source", ["print 'hello'\n", "def (:\n"])
def test_what_cannot_be_read_is_a_syntax_error(source: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        port_source(source, Plan("torch", "paddle_3"))
    assert caught.value.lineno == 1


def test_what_is_nested_too_deeply_is_told() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own, which frameworks raise
    try:
        with pytest.raises(RecursionError):
            port_source("1" + " + 1" * 1000 + "\n", Plan("torch", "paddle_3"))
    finally:
        sys.setrecursionlimit(limit)


COMMENTS = [
    (
        "dist.init_process_group(\n    rank=r,  # mine\n    # of all\n    world_size=w,\n    timeout=f(\n        1\n    ),  # '#'\n)",
        "dist.init_parallel_env(\n    # mine\n    # of all\n    # '#'\n)",
    ),
    (
        "g = dist.new_group(\n    ranks,  # mine\n    pg_options=o,  # o\n    group_desc='#',  # last\n)",
        "g = dist.new_group(\n    ranks,  # mine\n    # o  # last\n)",
    ),
    (
        "g = dist.new_group(\n    ranks,\n    pg_options=o,  # o\n    timeout=t,  # t\n)",
        "g = dist.new_group(\n    ranks,\n    # o\n    timeout=t,  # t\n)",
    ),
    (
        "g = dist.new_group(\n    ranks,  # mine\n    pg_options=o)",
        "g = dist.new_group(\n    ranks,  # mine\n    )",
    ),
]


@pytest.mark.parametrize(("before", "after"), COMMENTS)
def test_comments_stay_where_an_argument_goes(before: str, after: str) -> None:
    ported = port(f"{TORCH}{before}\n", "torch", "paddle_3")
    assert ported.text == f"{WRITTEN['paddle_3']}{after}\n"
    assert [entry.rule for entry in ported.entries] == ["argument-without-effect"]


@pytest.mark.parametrize("annotation", ["dist.Work", "'dist.Work'", "Optional[dist.Work]", "'dist.Work | None'"])
def test_an_annotation_of_a_handle_needs_no_class(annotation: str) -> None:
    ported = port(f"{TORCH}def f(w: {annotation}) -> {annotation}: ...\n", "torch", "paddle_3")
    assert not ported.entries
    assert "Work" not in ported.text
    assert ported.text.count("object") == 2
    ported = port(f"{TORCH}isinstance(w, dist.Work)\n", "torch", "paddle_3")
    assert [entry.rule for entry in ported.entries] == ["no-equivalent"]


@pytest.mark.parametrize("target", ["paddle_3", "mindspore"])
def test_the_world_as_a_default_is_none(target: str) -> None:
    ported = port(f"{TORCH}def f(g=dist.group.WORLD): dist.barrier(g)\n", "torch", target)
    assert ported.text == f"{WRITTEN[target]}def f(g=None): dist.barrier(g)\n"
    kept = port(f"{TORCH}def f(g=dist.group.WORLD): return g.size()\n", "torch", "paddle_3")
    assert "g=dist.get_group(0)" in kept.text


def test_a_backend_of_another_kind_of_device_is_reported() -> None:
    found = {
        name: [
            entry.rule for entry in port(f"{TORCH}dist.init_process_group('{name}')\n", "torch", "mindspore").entries
        ]
        for name in ("gloo", "nccl", "mpi")
    }
    assert found == {"gloo": ["backend-name"], "nccl": [], "mpi": ["backend-name"]}
