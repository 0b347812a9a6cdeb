"""Which groups are shut down and restarted."""

from __future__ import annotations

from typing import Any

from shim.core.callers import Caller
from shim.errors import UnsupportedError
from shim.frontends._paddle import tasks
from shim.frontends._paddle.groups import group_views


def shut_down_groups(caller: Caller, group: Any) -> None:
    """Shut *group* down, or every group but the world."""
    world = group_views.member_of(caller, None)
    chosen = group_views.member_of(caller, group)
    if group is not None and chosen is world:
        raise caller.explain(
            UnsupportedError(
                f"group must not be the world, of which the paddle frontend's groups are parts, got {group!r}\n"
                "Call destroy_process_group to leave it."
            )
        )
    leaving = [one for one in group_views.all_groups() if one is not world] if group is None else [chosen]
    for one in leaving:
        group_views.shut_down(one)
    tasks.forget([one.id for one in leaving])


def restart_groups(caller: Caller, group: Any) -> None:
    """Restart *group*, or every group that is shut down, in the order in which they were made, the same on every rank."""
    group_views.member_of(caller, None)
    for one in group_views.all_groups() if group is None else [group_views.member_of(caller, group)]:
        group_views.restart(caller, one)
