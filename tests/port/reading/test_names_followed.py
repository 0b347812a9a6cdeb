"""Ways to write a name, an annotation or arguments that the port follows: quoted, by getattr, in dictionaries, in try and except."""

from __future__ import annotations

import ast

import pytest

from shim.port import Plan, Ported, port_source

TORCH = "import torch.distributed as dist\n"
PADDLE = "import shim.frontends.paddle_3.distributed as dist\n"


def port(source: str, target: str = "paddle_3") -> Ported:
    ported = port_source(source, Plan("torch", target))
    ast.parse(ported.text)
    return ported


FOLLOWED = [
    # annotations in quotes
    ('def f(g: "dist.ProcessGroup"):\n    g.size()', 'def f(g: "dist.collective.Group"):\n    g.nranks'),
    (
        "def f(g: Optional['dist.ProcessGroup'] = None):\n    g.rank()",
        "def f(g: Optional['dist.collective.Group'] = None):\n    g.rank",
    ),
    ('g: "None | dist.ProcessGroup" = x\ng.size()', 'g: "None | dist.collective.Group" = x\ng.nranks'),
    ('def f() -> "dist.ProcessGroup": ...', 'def f() -> "dist.collective.Group": ...'),
    # dictionaries
    (
        "dist.all_reduce(t, **{'async_op': True, \"group\": g})",
        "dist.all_reduce(t, **{'sync_op': False, \"group\": g})",
    ),
    ("k = {'async_op': a or b}\ndist.barrier(**{})\ndist.all_reduce(t, **k)", "k = {'sync_op': not (a or b)}\ndist.barrier(**{})\ndist.all_reduce(t, **k)"),
    ("dist.all_reduce(t, **{'op': dist.ReduceOp.PRODUCT})", "dist.all_reduce(t, **{'op': dist.ReduceOp.PROD})"),
    ("dist.isend(tag=0, **{'tensor': t, 'dst': 1})", "dist.isend(**{'tensor': t, 'dst': 1})"),
    # names in quotes
    ("getattr(dist, 'all_to_all')(o, i, async_op=True)", "dist.alltoall(o, i, sync_op=False)"),
    ("f = getattr(dist, 'all_gather_into_tensor', None)\nf(o, i)", "f = dist.stream.all_gather\nf(o, i)"),
    ("f = getattr(dist, 'all_gather_into_tensor', dist._all_gather_base)\nf(o, i, async_op=True)", "f = dist.stream.all_gather\nf(o, i, sync_op=False)"),
    (
        'if hasattr(dist, "all_gather_into_tensor"):\n    f = dist.all_gather_into_tensor\nelse:\n    f = dist._all_gather_base\nf(o, i, async_op=True)',
        'if hasattr(dist.stream, "all_gather"):\n    f = dist.stream.all_gather\nelse:\n    f = dist.stream.all_gather\nf(o, i, sync_op=False)',
    ),
    # several values and imports that do the same
    (
        "try:\n    f = dist.all_gather_into_tensor\nexcept AttributeError:\n    f = dist._all_gather_base\ndef g(o, i):\n    f(o, i, async_op=True)",
        "try:\n    f = dist.stream.all_gather\nexcept AttributeError:\n    f = dist.stream.all_gather\ndef g(o, i):\n    f(o, i, sync_op=False)",
    ),
    (
        "try:\n    from torch.distributed import all_gather_into_tensor as f\nexcept ImportError:\n    from torch.distributed import _all_gather_base as f\nf(o, i, async_op=True)",
        "try:\n    from shim.frontends.paddle_3.distributed.stream import all_gather as f\nexcept ImportError:\n"
        "    from shim.frontends.paddle_3.distributed.stream import all_gather as f\nf(o, i, sync_op=False)",
    ),
    ("f = None\nf = dist.all_reduce\nf(t, async_op=True)", "f = None\nf = dist.all_reduce\nf(t, sync_op=False)"),
    # the world
    ("from torch.distributed import group\ndist.barrier(group.WORLD)", "dist.barrier(None)"),
    (
        "from torch.distributed import group\ng = group.WORLD\ng.size()",
        "from shim.frontends.paddle_3.distributed import get_group\ng = get_group(0)\ng.nranks",
    ),
    ("dist._get_default_group().size()", "dist.collective._get_default_group().nranks"),
    ('x = dist.Backend("nccl") == dist.Backend.GLOO', 'x = str("nccl") == "gloo"'),
    ("dist.all_reduce(t, dist.reduce_op.PRODUCT)", "dist.all_reduce(t, dist.ReduceOp.PROD)"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), FOLLOWED)
def test_followed(before: str, after: str) -> None:
    ported = port(f"{TORCH}{before}\n")
    assert ported.text == f"{PADDLE}{after}\n"
    assert not ported.entries


PADDLES = [
    ("x = dist.ParallelEnv().nranks", "x = dist.get_world_size()"),
    ("x = dist.ParallelEnv().local_rank", "x = dist.get_rank()"),
    ("g = dist.get_group()\nx = g.nranks", "g = dist.group.WORLD\nx = g.size()"),
    ("g = dist.get_group(0)\nx = g.rank", "g = dist.group.WORLD\nx = g.rank()"),
]


@pytest.mark.parametrize(("before", "after"), PADDLES)
def test_what_paddle_tells_by_objects(before: str, after: str) -> None:
    source = f"import paddle.distributed as dist\ndist.barrier()\n{before}\n"
    ported = port_source(source, Plan("paddle_3", "torch"))
    assert ported.text == f"import shim.frontends.torch.distributed as dist\ndist.barrier()\n{after}\n"
    assert not ported.entries


def test_an_object_with_paddles_variables_is_left_for_what_it_alone_tells() -> None:
    source = "import paddle.distributed as dist\nenv = dist.ParallelEnv()\nx = env.rank, env.nranks\n"
    ported = port_source(source, Plan("paddle_3", "mindspore"))
    assert ported.text.endswith("env = dist.ParallelEnv()\nx = dist.get_rank(), dist.get_world_size()\n")
    assert [(entry.line, entry.rule) for entry in ported.entries] == [(2, "no-equivalent")]


LEFT = [
    ("f(dist.ProcessGroup.Options)", "no-equivalent"),
    ("f(dist.Backend.UCC)", "no-equivalent"),
    ("k = {'async_op': True}\nk['group'] = g\ndist.all_reduce(t, **k)", "unpacked-arguments"),
    ("k = {'async_op': True}\nk = {}\ndist.all_reduce(t, **k)", "unpacked-arguments"),
    ("k = {'op': dist.ReduceOp.SUM}\ndist.all_reduce(t, **k)", "unpacked-arguments"),
    ("dist.all_reduce(t, **{'async_op': True, **k})", "unpacked-arguments"),
    ("dist.isend(t, **{'dst': 1, 'tag': 0})", "unpacked-arguments"),
    ("dist.all_reduce(t, **{'sync_op': True})", "unknown-argument"),
    ("getattr(dist, name)(t)", "name-at-run-time"),
    ("hasattr(dist, name)", "name-at-run-time"),
    ("hasattr(dist, 'nothing_known')", "no-equivalent"),
    ("hasattr(dist, 'get_process_group_ranks')", "no-equivalent"),
    ("getattr(dist, 'new_subgroups')(t)", "no-equivalent"),
]


@pytest.mark.parametrize(("source", "rule"), LEFT)
def test_what_is_not_certain_is_left(source: str, rule: str) -> None:
    ported = port(f"{TORCH}{source}\n")
    assert ported.text == f"{PADDLE}{source}\n"
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", rule)]


def test_a_string_that_is_no_annotation_stays() -> None:
    source = f'{TORCH}x = "dist.ProcessGroup"\ndef f(a="dist.ProcessGroup", b: r"dist.ProcessGroup" = 1, c: "dist..x" = 2): ...\n'
    assert port(source).text == source.replace(TORCH, PADDLE)


def test_a_quoted_class_that_is_pythons_own_on_the_target() -> None:
    ported = port(f'{TORCH}def f(g: "Optional[dist.ProcessGroup]"):\n    return g.size()\n', "mindspore")
    assert ported.text.endswith('def f(g: "Optional[str]"):\n    return dist.get_world_size(g)\n')


REMARKS = [
    ("n = dist.recv(t, 1)", "shim", ["result-used"]),
    ("dist.recv(t, 1)", "shim", []),
    ("f = functools.partial(dist.recv, src=1)", "shim", []),
    ("dist.monitored_barrier()", "shim", []),
    ("dist.monitored_barrier()", "native", ["missing-ranks"]),
    ("dist.monitored_barrier(timeout=t, wait_all_ranks=False)", "shim", ["argument-without-effect"]),
]


@pytest.mark.parametrize(("source", "onto", "rules"), REMARKS)
def test_what_a_call_no_longer_tells(source: str, onto: str, rules: list[str]) -> None:
    ported = port_source(f"{TORCH}{source}\n", Plan("torch", "paddle_3", onto="shim" if onto == "shim" else "native"))
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("changed", rule) for rule in rules]
    assert not port_source(f"{TORCH}{source}\n", Plan("torch", "torch")).entries
