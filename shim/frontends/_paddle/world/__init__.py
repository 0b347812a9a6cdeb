"""The world of the two Paddles; this lists the functions and classes that are the same in both."""

from __future__ import annotations

from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.world.elsewhere import launch, split
from shim.frontends._paddle.world.gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from shim.frontends._paddle.world.lifecycle import (
    destroy_process_group,
    get_backend,
    get_group,
    get_rank,
    get_world_size,
    is_available,
    is_initialized,
)
from shim.frontends._paddle.world.parallel_env import ParallelEnv
from shim.frontends._paddle.world.spawning import spawn

__all__ = [
    "Group",
    "ParallelEnv",
    "destroy_process_group",
    "get_backend",
    "get_group",
    "get_rank",
    "get_world_size",
    "gloo_barrier",
    "gloo_init_parallel_env",
    "gloo_release",
    "is_available",
    "is_initialized",
    "launch",
    "spawn",
    "split",
]
