"""Process groups as torch code sees them: views of core's groups, and what a ``group`` argument may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from shim.core import groups, stores
from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends.torch.distributed._errors import ArgumentTypeError
from shim.frontends.torch.distributed._group_collectives import GroupCollectives
from shim.frontends.torch.distributed._group_methods import GroupMethods
from shim.frontends.torch.distributed._tracing import keep_out_of_graphs

__all__ = [
    "FRONTEND",
    "GroupMember",
    "ProcessGroup",
    "default_store",
    "find",
    "forget",
    "forget_all",
    "group",
    "group_count",
    "group_of",
    "is_apart",
    "is_outsider",
    "is_registered",
    "is_world",
    "member_of",
    "named",
    "next_name_of",
    "next_number",
    "open_view",
    "part_of_world",
    "replace_world",
    "set_world",
    "view_of",
    "views",
    "world_view",
]

FRONTEND = "torch"


class ProcessGroup(GroupCollectives, GroupMethods):
    """A group of ranks; the view of ``core``, which other frontends may show in their own way.

    Groups are made by ``new_group`` and its like. ``tag`` is what ``_new_group_with_tag`` names it for finding.

    See: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ProcessGroup
    """

    __slots__ = ("__weakref__", "backend", "core", "group_desc", "group_name", "tag")

    def __init__(
        self, core: groups.ProcessGroup, group_name: str, group_desc: str, backend: str, tag: str = ""
    ) -> None:
        self.core = core
        self.group_name = group_name
        self.group_desc = group_desc
        self.backend = backend
        self.tag = tag or f"ptd:{group_name}"

    def rank(self) -> int:
        """Return the caller's rank in this group."""
        return self.core.rank

    def size(self) -> int:
        """Return the number of its ranks."""
        return self.core.size

    def name(self) -> str:
        """Return the name of its backend, as torch does; ``group_name`` is the group's own."""
        return self.backend

    def _set_group_name(self, name: str) -> None:
        self.group_name = name

    def _set_group_desc(self, description: str) -> None:
        self.group_desc = description

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} rank {self.core.rank} of {self.core.size}>"


class _Views:
    """What this frontend has handed out and not taken back; one per process, like the world itself."""

    def __init__(self) -> None:
        self.world: ProcessGroup | None = None
        self.subgroups: dict[str, ProcessGroup] = {}  # under core's names
        self.numbered = 0  # groups on which all ranks have agreed since the initialisation, the world included
        self.by_members: Counter[tuple[int, ...]] = Counter()  # groups that these ranks alone have made
        self.store: stores.Store | None = None  # through which the world's ranks can tell each other things


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


def is_world(view: Any) -> bool:
    """Tell whether *view* is that of the world, which may be closed by now, but is not forgotten."""
    return view is _views.world


def set_world(core: groups.ProcessGroup, group_name: str, backend: str, store: stores.Store | None) -> None:
    """Make the view of the world; what is left of one that was closed behind our back is forgotten."""
    forget_all()
    if not group_name:
        group_name = next_number()
    _views.world = ProcessGroup(core, group_name, "default_pg", backend)
    _views.store = store
    keep_out_of_graphs()


def replace_world(core: groups.ProcessGroup, old: ProcessGroup) -> ProcessGroup:
    """Let the ranks of *core* be the whole world from now on, in place of *old*."""
    _views.world = ProcessGroup(core, f"{old.group_name}:shrunk", old.group_desc, old.backend, old.tag)
    return _views.world


def open_view(core: groups.ProcessGroup, group_name: str, group_desc: str, backend: str, tag: str = "") -> ProcessGroup:
    """Make the view of a subgroup."""
    core.description = group_desc
    view = ProcessGroup(core, group_name, group_desc, backend, tag)
    _views.subgroups[core.name] = view
    return view


def next_number() -> str:
    """Return the name, a number, of the next group, on which all ranks have agreed."""
    _views.numbered += 1
    return str(_views.numbered - 1)


def next_name_of(ranks: tuple[int, ...]) -> str:
    """Return a name for core that the members of a new group, who all make their groups in the same order, find alone.

    It is asked for before the call can be refused: the members who do not refuse it count it.
    """
    _views.by_members[ranks] += 1
    return f"torch_{'_'.join(map(str, ranks))}_{_views.by_members[ranks]}"


def group_count() -> int:
    """Return the number of groups on which all ranks have agreed since the initialisation, the world included."""
    return _views.numbered


def views() -> list[ProcessGroup]:
    """Return the world's view and those of the subgroups this process is in, in the order they were made."""
    return ([] if _views.world is None else [_views.world]) + list(_views.subgroups.values())


def named(name: str) -> ProcessGroup | None:
    """Return the group called *name*, or None."""
    return next((view for view in views() if view.group_name == name), None)


def find(tag: str, ranks: Sequence[int]) -> ProcessGroup | None:
    """Return the first group with *tag* whose world ranks are *ranks* in any order; an empty tag is any but a user's."""
    prefixed = tag if tag == "" or tag.startswith(("ptd:", "user:")) else f"user:{tag}"
    for view in views():
        fits = view.tag.startswith("ptd:") if tag == "" else view.tag == prefixed
        if fits and sorted(view.core.ranks) == sorted(ranks):
            return view
    return None


def is_registered(view: Any) -> bool:
    """Tell whether *view* was handed out and not destroyed since."""
    return any(view is one for one in views())


def is_apart(view: Any) -> bool:
    """Tell whether *view* is of a living group that met by itself, and is none of the world's."""
    return isinstance(view, ProcessGroup) and view.core.is_alive and groups.find_group(view.core.name) is not view.core


def default_store(caller: Caller) -> stores.Store:
    """Return the store of the world's ranks: the one they met through, or one made when the first rank asks."""
    view_of(caller, None)
    if _views.store is None:
        _views.store = stores.LocalStore(f"world {groups.world_token(caller)}")
    return _views.store


def forget_all() -> list[ProcessGroup]:
    """Forget the world and return the subgroups' views, newest first."""
    subgroups = list(reversed(_views.subgroups.values()))
    if isinstance(_views.store, stores.LocalStore):
        _views.store.close()
    _views.__init__()  # type: ignore[misc]  # everything as it was before the initialisation
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
    """Return *group* if it is a group of which the caller is a member, and not destroyed."""
    if not isinstance(group, ProcessGroup) or not (is_registered(group) or is_apart(group)):
        what = "that was not destroyed" if isinstance(group, ProcessGroup) else "that this process is in"
        raise caller.explain(ArgumentError(f"{{group}} must be a process group {what}, got {group!r}"))
    return group


def part_of_world(caller: Caller, group: Any) -> ProcessGroup:
    """Return the view for a ``group`` argument as ``view_of`` does; its ranks must be the world's."""
    view = view_of(caller, group)
    if is_apart(view):
        raise caller.explain(
            UnsupportedError(f"the torch frontend makes groups of the world's ranks alone, got {{group}} {view!r}")
        )
    return view


def _uninitialized() -> StateError:
    return StateError("the default process group is not initialised\nCall init_process_group first, on every rank.")
