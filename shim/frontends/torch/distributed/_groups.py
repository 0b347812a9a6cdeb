"""Process groups as torch code sees them: views of core's groups, and what a ``group`` argument may be."""

from __future__ import annotations

from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError
from shim.frontends.torch.distributed._errors import ArgumentTypeError
from shim.frontends.torch.distributed._group_collectives import GroupCollectives
from shim.frontends.torch.distributed._tracing import keep_out_of_graphs

__all__ = [
    "FRONTEND",
    "GroupMember",
    "ProcessGroup",
    "forget",
    "forget_all",
    "group",
    "group_of",
    "is_outsider",
    "member_of",
    "open_view",
    "set_world",
    "view_of",
    "world_view",
]

FRONTEND = "torch"


class ProcessGroup(GroupCollectives):
    """A group of ranks; the view of ``core``, which other frontends may show in their own way.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ProcessGroup
    """

    __slots__ = ("__weakref__", "backend", "core", "group_desc", "group_name")

    def __init__(self, core: groups.ProcessGroup, group_name: str, group_desc: str, backend: str) -> None:
        self.core = core
        self.group_name = group_name
        self.group_desc = group_desc
        self.backend = backend

    def rank(self) -> int:
        """Return the caller's rank in this group."""
        return self.core.rank

    def size(self) -> int:
        """Return the number of its ranks."""
        return self.core.size

    def name(self) -> str:
        """Return the name of its backend, as torch does; ``group_name`` is the group's own."""
        return self.backend

    @property
    def bound_device_id(self) -> None:
        """No accelerator: the engine works on host memory."""
        return None

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} rank {self.core.rank} of {self.core.size}>"


class _Views:
    """The views this frontend has handed out and not destroyed."""

    world: ProcessGroup | None = None
    subgroups: dict[str, ProcessGroup] = {}  # noqa: RUF012  # one per process, like the world itself


_views = _Views()
_OUTSIDE = groups.ProcessGroup("GroupMember.NON_GROUP_MEMBER", (), -1, None, "", 0.0)


class _WorldMeta(type):
    """Gives a class the property WORLD."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # torch's name
        """The group of all ranks, None before initialisation."""
        return world_view()


class GroupMember(metaclass=_WorldMeta):
    """``WORLD``, and what ``new_group`` returns to processes outside the new group."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_WorldMeta):  # torch's name
    """``group.WORLD`` is the group of all ranks, None before initialisation."""


def world_view() -> ProcessGroup | None:
    """Return the view of the world, or None when this frontend has not initialised it or it was closed since."""
    world = _views.world
    return world if world is not None and world.core.is_alive else None


def set_world(core: groups.ProcessGroup, group_name: str, backend: str) -> None:
    """Make the view of the world; what is left of one that was closed behind our back is forgotten."""
    _views.subgroups.clear()
    _views.world = ProcessGroup(core, group_name, "default_pg", backend)
    keep_out_of_graphs()


def open_view(core: groups.ProcessGroup, group_desc: str, backend: str) -> ProcessGroup:
    """Make the view of a subgroup."""
    view = ProcessGroup(core, core.name, group_desc, backend)
    _views.subgroups[core.name] = view
    return view


def forget_all() -> list[ProcessGroup]:
    """Forget the world and return the subgroups' views, newest first."""
    subgroups = list(reversed(_views.subgroups.values()))
    _views.world = None
    _views.subgroups.clear()
    return subgroups


def forget(view: ProcessGroup) -> None:
    """Forget the view of a subgroup."""
    _views.subgroups.pop(view.core.name, None)


def is_outsider(group: Any) -> bool:
    """Tell whether *group* is what ``new_group`` returned to a process outside the group."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def group_of(caller: Caller, group: Any) -> groups.ProcessGroup:
    """Return core's group for a ``group`` argument; one without a rank for NON_GROUP_MEMBER.

    Raises StateError before initialisation, and an error that is ValueError and TypeError for what is no group.
    """
    if group is None:
        if _views.world is None:
            raise caller.explain(_uninitialized())
        return _views.world.core
    if isinstance(group, ProcessGroup):
        return group.core
    if is_outsider(group):
        return _OUTSIDE
    raise caller.explain(
        ArgumentTypeError(f"{{group}} must be a ProcessGroup or None, got {group!r}\nGroups are made by new_group.")
    )


def view_of(caller: Caller, group: Any) -> ProcessGroup:
    """Return the view for a ``group`` argument of which the caller must be a member; None is the world."""
    if group is None:
        if _views.world is None:
            raise caller.explain(_uninitialized())
        return _views.world
    return member_of(caller, group)


def member_of(caller: Caller, group: Any) -> ProcessGroup:
    """Return *group* if it is a living group of which the caller is a member."""
    if not isinstance(group, ProcessGroup) or not group.core.is_alive:
        raise caller.explain(ArgumentError(f"{{group}} must be a process group that this process is in, got {group!r}"))
    return group


def _uninitialized() -> StateError:
    return StateError("the default process group is not initialised\nCall init_process_group first, on every rank.")
