"""Whether a program's results on the engine are gloo's."""

from __future__ import annotations

import math
from typing import Any

from campaigns.real_programs.running import Run

BITS = "the same bits"
CLOSE = "the same within 1e-5"
_FAKE = "torch._C._distributed_c10d.FakeProcessGroup"  # torchtitan asks for it where a mesh has one rank
_TOLERANCE = 1e-5  # of float32's sums in another order


def compare(gloo: Run, ours: Run) -> str:
    """Return BITS, CLOSE, or where the results of *ours* first differ."""
    found = BITS
    for rank, (expected, given) in enumerate(zip(gloo.results, ours.results, strict=True)):
        names, ours_names = ([entry["name"] for entry in entries] for entries in (expected, given))
        if names != ours_names:
            return f"rank {rank} shows {ours_names}, on gloo {names}"
        for one, other in zip(expected, given, strict=True):
            if one["bits"] == other["bits"]:
                continue
            if not _is_close(one["value"], other["value"]):
                return f"rank {rank}, {one['name']}: {other['value']}, on gloo {one['value']}"
            found = CLOSE
    return found


def is_on_engine(run: Run) -> bool:
    """Tell whether every process group of every rank was the engine's, and there was one; groups that move nothing aside."""
    moving = [[kind for kind in of_rank if kind != _FAKE] for of_rank in run.groups]
    return all(of_rank and all(kind.startswith("shim.") for kind in of_rank) for of_rank in moving)


def _is_close(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(one == other)
