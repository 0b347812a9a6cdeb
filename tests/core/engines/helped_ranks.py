"""What ranks do in test_helper_threads.py; in a module of its own, because it runs in other processes."""

from __future__ import annotations

import os

import shim
from shim.conformance.soak.comparing import difference
from shim.conformance.soak.draw import Draw
from shim.conformance.soak.elements import KINDS
from shim.conformance.soak.operations import ME, OPERATIONS
from shim.core import groups

LARGE = 300_007  # elements: no whole number of parts


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def run(dtype: str) -> int:
    """Make large calls in a world where every second rank has helpers; return how many threads this rank has more than before."""
    helpers = 2 if int(os.environ["SHIM_RANK"]) % 2 == 0 else 0
    os.environ["SHIM_HELPER_THREADS"] = str(helpers)
    before = threads()
    kind = next(kind for kind in KINDS if kind.name == dtype)
    world = groups.enter_world(ME, "test", timeout=30.0)
    try:
        assert shim.explain().endswith(f"; helper threads: {helpers}")
        for seed in range(4):
            for operation in OPERATIONS:
                made = operation(Draw(f"{seed}", world.size), world, kind, LARGE, False)
                for work in made.works:
                    work.wait()
                for placed, expected in made.outcomes:
                    assert difference(placed.tensor, expected) == "", operation.__name__
                    assert placed.is_intact_outside(), operation.__name__
    finally:
        groups.close_group(world)
    return threads() - before
