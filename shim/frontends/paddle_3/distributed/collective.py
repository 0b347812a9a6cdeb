"""Groups by an older path, at which much code still looks."""

from __future__ import annotations

from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.groups.membership import _get_default_group, _get_global_group
from shim.frontends._paddle.world.elsewhere import split
from shim.frontends._paddle.world.lifecycle import is_available, is_initialized
from shim.frontends.paddle_3.distributed._groups import new_group
from shim.frontends.paddle_3.distributed._restarting import restart_process_group, shutdown_process_group

__all__ = [
    "Group",
    "_get_default_group",
    "_get_global_group",
    "is_available",
    "is_initialized",
    "new_group",
    "restart_process_group",
    "shutdown_process_group",
    "split",
]
