"""Partials of functions of the API: written where later calls mean the same to the target's function, and left elsewhere."""

from __future__ import annotations

import pytest

from shim.port import Plan, port_source

HEAD = "from functools import partial\nimport torch.distributed as dist\n"

# The code, and the targets' frameworks for which it is left.
PARTIALS = [
    ("partial(dist.all_reduce, op=dist.ReduceOp.MAX)(x)", ""),
    ("f = partial(dist.all_reduce, op=dist.ReduceOp.MAX)\nf(x)\nf(y)", ""),
    ("f = partial(dist.all_reduce, op=dist.ReduceOp.MAX)\nf(x, async_op=True)", "paddle"),
    ("f = partial(dist.all_reduce, op=dist.ReduceOp.MAX)\nf(*given)", "paddle mindspore"),
    ("f = partial(dist.all_reduce, op=dist.ReduceOp.MAX)\nkeep(f)\nf(x)", "paddle"),
    ("keep(partial(dist.all_reduce, op=dist.ReduceOp.MAX))", "paddle"),
    ("keep(partial(dist.all_reduce, async_op=True))", ""),
    ("partial(dist.broadcast, x, 0)()", ""),
    ("partial(dist.all_to_all_single, group=g)(x, y)", "paddle_2"),
    ("partial(dist.all_to_all_single, x)(y)", ""),
    ("partial(dist.all_to_all_single, x, y)(a, b)", "paddle_2 paddle_3"),
    ("partial(dist.scatter, t)([x, y] if rank == 0 else None)", "mindspore"),
    ("partial(dist.scatter, t)([x, y])", "mindspore"),
    ("partial(dist.scatter, t)(scatter_list=[x, y])", "paddle"),
    ("partial(dist.scatter, t, lists)()", ""),
    ("keep(partial(dist.scatter, t, src=1))", "paddle mindspore"),
    ("keep(dist.scatter)", "paddle mindspore"),
    ("partial(dist.all_reduce, x)(op=dist.ReduceOp.MAX)", ""),
    ("partial(dist.all_reduce, x)(op=op)", "paddle mindspore"),
    ("partial(dist.scatter_object_list, group=g)(x, y)", "mindspore"),
    ("partial(dist.scatter_object_list, group=g)(x)", ""),
]


@pytest.mark.parametrize("target", ["paddle_2", "paddle_3", "mindspore"])
@pytest.mark.parametrize(("code", "left"), PARTIALS)
def test_what_is_left(code: str, left: str, target: str) -> None:
    ported = port_source(HEAD + code + "\n", Plan("torch", target))
    is_left = bool({target, target.partition("_")[0]} & {*left.split()})
    assert [entry.rule for entry in ported.entries] == ["function-as-value"] * is_left
    assert not is_left or code.partition("(")[0] in ported.text
