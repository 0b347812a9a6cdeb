"""Groups, and what paddle's users ask of them through its private functions."""

from __future__ import annotations

from shim.frontends._paddle.collectives import barrier, wait
from shim.frontends._paddle.groups import Group
from shim.frontends._paddle.lifecycle import destroy_process_group, get_backend, get_group, is_initialized
from shim.frontends._paddle.membership import (
    _get_global_group,
    _get_or_throw_group_rank,
    _is_global_group,
    _warn_cur_rank_not_in_group,
)

__all__ = [
    "Group",
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
