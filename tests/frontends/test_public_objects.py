"""No object of core is behind a public name of a framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shim.frontends.mindspore.mint.distributed as mint
import shim.frontends.paddle_2.distributed as paddle_2
import shim.frontends.paddle_3.distributed as paddle_3
import shim.frontends.torch.distributed as dist

OUR_OWN = {"core", "engine_op"}  # attributes that no framework has


def of_core(thing: Any) -> bool:
    return type(thing).__module__.startswith(("shim.core", "shim._native"))


def found_behind(thing: Any, path: str, seen: set[int]) -> list[str]:
    """Return the public paths from *thing* that lead to an object of core."""
    if id(thing) in seen or not type(thing).__module__.startswith("shim."):
        return []
    seen.add(id(thing))
    found = []
    for name in dir(thing):
        if not name.startswith("_") and name not in OUR_OWN and not callable(value := getattr(thing, name)):
            found += [f"{path}.{name}"] if of_core(value) else found_behind(value, f"{path}.{name}", seen)
    return found


@pytest.mark.ranks(1)
def test_what_the_frontends_hand_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore

    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "0")
    dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    numbers = np.ones(2, "float32")
    groups = [paddle_3.init_parallel_env(), paddle_2.new_group([0])]
    mint.init_process_group()
    handed_out = [
        dist.group.WORLD,
        dist.new_group([0]),
        dist.all_reduce(numbers, async_op=True),
        dist.distributed_c10d._get_default_store(),
        *groups,
        *(group.process_group for group in groups),
        paddle_3.all_reduce(numbers, sync_op=False),
        mint.all_reduce(mindspore.Tensor(numbers), async_op=True),
        *(
            getattr(module, name)
            for module in (dist, paddle_2, paddle_3, mint)
            for name in module.__all__
            if name != "reduce_op"  # torch's deprecated twin of ReduceOp, which warns
        ),
    ]
    try:
        for thing in handed_out:
            assert not of_core(thing)
            assert found_behind(thing, type(thing).__qualname__, set()) == []
    finally:
        paddle_3.destroy_process_group()
        mint.destroy_process_group()
        dist.destroy_process_group()
