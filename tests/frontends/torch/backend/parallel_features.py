# mypy: ignore-errors  # most of what it calls has no types in torch
"""What torch builds on its process groups: each feature is a function of this rank that returns numbers, which are to be the same on every backend.

They are called one after another in one world. Nothing here knows which backend it runs on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import collective_features  # noqa: F401  # each of them lists its features
import ddp_features  # noqa: F401
import dispatch_features  # noqa: F401
import fsdp_features  # noqa: F401
import hook_features  # noqa: F401
import mesh_features  # noqa: F401
import state_features  # noqa: F401
import torch
import torch.distributed as dist
from feature_parts import FEATURES, ON_REQUEST, plain


def run_all(backend: str, names: Sequence[str]) -> dict[str, Any]:
    """Return what each of the features *names* (none: of all) returns in a world of *backend*, or what it raises, and the class of the world's group."""
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    results: dict[str, Any] = {"group": type(dist.group.WORLD).__name__}
    for name in names or FEATURES:
        torch.manual_seed(0)
        try:
            results[name] = [plain(one) for one in (FEATURES | ON_REQUEST)[name](rank, size)]
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
        dist.barrier()
    dist.destroy_process_group()
    return results
