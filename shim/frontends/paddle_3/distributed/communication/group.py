"""Groups, and what paddle's users ask of them through its private functions."""

from __future__ import annotations

from shim.frontends import _releases
from shim.frontends._paddle.collectives.of_both import barrier, wait
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.groups.membership import (
    _get_global_group,
    _get_or_throw_group_rank,
    _GroupManager,
    _is_global_group,
    _warn_cur_rank_not_in_group,
)
from shim.frontends._paddle.world.lifecycle import destroy_process_group, get_backend, get_group, is_initialized

__all__ = [
    "Group",
    "_GroupManager",
    "_get_global_group",
    "_get_or_throw_group_rank",
    "_is_global_group",
    "_warn_cur_rank_not_in_group",
    "barrier",
    "destroy_process_group",
    "get_backend",
    "get_group",
    "is_initialized",
    "wait",
]

_releases.follow(globals())
