"""What ranks do in test_helper_threads.py; in a module of its own, because it runs in other processes."""

from __future__ import annotations

import os

import numpy as np
import random_calls
import torch

import shim
from shim.conformance import oracle
from shim.core import calls, groups
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp

ME = random_calls.ME
LARGE = 300_007  # elements: no whole number of parts
STEPS = (random_calls.broadcast, random_calls.all_reduce, random_calls.all_gather, random_calls.reduce_scatter, random_calls.all_to_all)  # fmt: skip


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def run(dtype: str, in_shared_memory: bool) -> int:
    """Make large calls in a world where every second rank has helpers; return how many threads this rank has more than before."""
    helpers = 2 if int(os.environ["SHIM_RANK"]) % 2 == 0 else 0
    os.environ["SHIM_HELPER_THREADS"] = str(helpers)
    before = threads()
    world = groups.enter_world(ME, "test", timeout=30.0)
    try:
        assert shim.explain().endswith(f"; helper threads: {helpers}")
        for seed in range(3):
            if dtype == "bfloat16":
                reduce_bfloat16(world, seed)
                continue
            for step in STEPS:
                draw = random_calls.Draw(seed, world.size, in_shared_memory)
                work, seen, expected = step(draw, world, dtype, LARGE)
                work.wait()
                for one, other in zip(seen, expected, strict=True):
                    random_calls.assert_same_bits(f"{step.__name__} on rank {world.rank}", one, other)
    finally:
        groups.close_group(world)
    return threads() - before


def reduce_bfloat16(world: ProcessGroup, seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = [LARGE] * world.size
    whole = [oracle.bfloat16(random.standard_normal(sum(counts)).astype(np.float32)) for _ in counts]
    total = whole[0].copy()
    for other in whole[1:]:
        total += other
    total = oracle.bfloat16(total)
    mine = torch.from_numpy(whole[world.rank]).bfloat16()
    part = torch.ones(LARGE, dtype=torch.bfloat16)
    calls.reduce_scatter(ME, world, part, mine, ReduceOp.SUM).wait()
    expected = total[world.rank * LARGE :][:LARGE]
    random_calls.assert_same_bits("reduce_scatter", part.float().numpy(), expected)
    calls.all_reduce(ME, world, mine, mine, ReduceOp.SUM).wait()
    random_calls.assert_same_bits("all_reduce", mine.float().numpy(), total)
