"""Questions about the caller's membership, some of which paddle's own users ask through its private functions."""

from __future__ import annotations

from typing import Any

from shim.core.callers import Caller, warn_user
from shim.frontends._paddle.errors import OutsiderError, paddle_function
from shim.frontends._paddle.groups.group_views import Group, all_groups, groups_by_id, is_entered, member_of

_GET_GLOBAL_GROUP = paddle_function("communication.group._get_global_group")
_NOT_IN_GROUP = paddle_function("communication.group._warn_cur_rank_not_in_group")


def backend_of(caller: Caller, group: Any) -> str:
    """Return the backend string of *group* in upper case; outside it, raise OutsiderError."""
    view = member_of(caller, group)
    if not view.is_member():
        raise caller.explain(OutsiderError("{group} must be one that the caller is a member of"), view._core)
    return view.backend


def _get_global_group() -> Group:
    """Return the group of the world. Raises RuntimeError before initialisation."""
    return member_of(_GET_GLOBAL_GROUP, None)


_get_default_group = _get_global_group


class _GroupManager:
    """The world and the groups that were made and not destroyed, by their ids."""

    global_group_id = 0
    group_map_by_id = groups_by_id()


def _get_group_map() -> dict[int, Group]:
    """Return the world and the groups that were made and not destroyed, by their ids."""
    return groups_by_id()


def _get_group_map_by_name() -> dict[str | None, Group]:
    """Return the world and the groups that were made and not destroyed, by their names."""
    return {group.name: group for group in all_groups()}


def _is_parallel_ctx_initialized() -> bool:
    """Tell whether the world is there."""
    return is_entered()


def _is_data_parallel_mode() -> bool:
    """Tell whether the world is there, and has several ranks."""
    return is_entered() and _get_global_group().nranks > 1


def _is_global_group(group: Group) -> bool:
    """Tell whether *group* is the world's."""
    return group.id == 0


def _warn_cur_rank_not_in_group(group: Group | None) -> bool:
    """Tell whether the caller is outside *group*, with a warning where it is."""
    return group is not None and not group.is_member() and _warned(group)


def _warned(group: Group) -> bool:
    rank = member_of(_NOT_IN_GROUP, None).rank
    warn_user(f"rank {rank} does not belong to group {group.name!r}, whose ranks are {group.ranks}")
    return True


def _get_or_throw_group_rank(global_rank: int, group: Group) -> int:
    """Return the rank in *group* of the world's *global_rank*. Raises ValueError for one outside."""
    return group.get_group_rank(global_rank)
