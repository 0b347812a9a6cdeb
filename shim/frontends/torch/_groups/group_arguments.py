"""What a ``group`` argument may be, and which group it stands for."""

from __future__ import annotations

from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch._errors import ArgumentTypeError
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.process_group import GroupMember, ProcessGroup
from shim.frontends.torch._groups.registry import handed_out

_OUTSIDE = groups.ProcessGroup("GroupMember.NON_GROUP_MEMBER", (), -1, None, "", 0.0)


def is_outsider(group: Any) -> bool:
    """Tell whether *group* is what ``new_group`` returned to a process outside the group."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def group_of(caller: Caller, group: Any) -> groups.ProcessGroup:
    """Return core's group for a ``group`` argument; one without a rank for NON_GROUP_MEMBER.

    Raises StateError before initialisation, and an error that is ValueError and TypeError for what is no group.
    """
    if group is None:
        world = handed_out.world
        return (registry.world_of(caller) if world is None else world).core
    if isinstance(group, ProcessGroup):
        return group.core
    if is_outsider(group):
        return _OUTSIDE
    raise caller.explain(
        ArgumentTypeError(f"{{group}} must be a ProcessGroup or None, got {group!r}\nGroups are made by new_group.")
    )


def view_of(caller: Caller, group: Any) -> ProcessGroup:
    """Return the view for a ``group`` argument of which the caller must be a member; None is the world."""
    return registry.world_of(caller) if group is None else member_of(caller, group)


def member_of(caller: Caller, group: Any) -> ProcessGroup:
    """Return *group* if it is a group of which the caller is a member, and not destroyed."""
    if not isinstance(group, ProcessGroup):
        raise caller.explain(ArgumentError(f"{{group}} must be a process group that this process is in, got {group!r}"))
    registry.check_open(caller, group)
    return group


def bound_to(group: Any) -> Any:
    """Return the device that the group of a ``group`` argument is bound to, if any."""
    return getattr(handed_out.world if group is None else group, "bound_device_id", None)


def part_of_world(caller: Caller, group: Any) -> ProcessGroup:
    """Return the view for a ``group`` argument as ``view_of`` does; its ranks must be the world's."""
    view = view_of(caller, group)
    registry.check_of_world(caller, view)
    return view
