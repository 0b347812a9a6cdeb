"""DTensor's move from one sharded dimension to another, by an all_to_all in groups of the engine's.

torch gathers everything on every rank instead, and throws most of it away, where a mesh is of CPUs: it says that their groups have no all_to_all.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import torch

from shim.frontends._after_import import after_import
from shim.frontends.torch._backend.group import EngineGroup

_NAME = "shard_dim_alltoall"


@functools.cache
def exchange_directly() -> None:
    """Replace torch's function that decides it, now or when its module is imported."""
    after_import("torch.distributed.tensor._collective_utils", _replace_in)


def _replace_in(module: ModuleType) -> None:
    gather: Any = getattr(module, _NAME, None)
    if gather is None:  # another version of torch
        return

    @functools.wraps(gather)
    def exchange(input: Any, gather_dim: int, shard_dim: int, mesh: Any, mesh_dim: int) -> Any:
        group = mesh.get_group(mesh_dim)
        if input.device.type != "cpu" or not isinstance(group, EngineGroup):
            return gather(input, gather_dim, shard_dim, mesh, mesh_dim)
        return torch.ops._dtensor.shard_dim_alltoall(input, gather_dim, shard_dim, group.group_name)

    for holder in (module, sys.modules.get("torch.distributed.tensor.placement_types")):
        if getattr(holder, _NAME, None) is gather:
            setattr(holder, _NAME, exchange)
