"""Groups by an older path, at which much code still looks."""

from __future__ import annotations

from shim.frontends import _releases
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.groups.membership import (
    _get_default_group,
    _get_global_group,
    _get_group_map,
    _get_group_map_by_name,
)
from shim.frontends._paddle.world.elsewhere import split
from shim.frontends._paddle.world.lifecycle import is_available, is_initialized
from shim.frontends.paddle_3.distributed._groups import new_group, restart_process_group, shutdown_process_group

__all__ = [
    "Group",
    "_get_default_group",
    "_get_global_group",
    "_get_group_map",
    "_get_group_map_by_name",
    "is_available",
    "is_initialized",
    "new_group",
    "restart_process_group",
    "shutdown_process_group",
    "split",
]

_releases.follow(globals())
