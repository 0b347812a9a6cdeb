"""The process groups that this frontend has handed out and not taken back, and the store that the world's ranks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from shim.core import groups
from shim.core.callers import Caller
from shim.core.job import stores
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends.torch._stores.stores import Store, show

if TYPE_CHECKING:
    from shim.frontends.torch._groups.process_group import ProcessGroup

FRONTEND = "torch"


class TorchWorld(Protocol):
    """torch's own record of process groups, in which ``torch.distributed`` itself finds those that are handed out here."""

    group_class: type[ProcessGroup]
    group_count: int  # how many groups all ranks have agreed on

    def add(self, view: ProcessGroup) -> None: ...
    def remove(self, view: ProcessGroup) -> None: ...
    def clear(self) -> None: ...


class _Views:
    """What this frontend has handed out and not taken back; one per process, like the world itself."""

    def __init__(self) -> None:
        self.world: ProcessGroup | None = None
        self.subgroups: dict[str, ProcessGroup] = {}  # under core's names
        self.numbered = 0  # groups on which all ranks have agreed since the initialisation, the world included
        self.store: stores.Store | None = None  # through which the world's ranks can tell each other things


handed_out = _Views()
_torch_worlds: list[TorchWorld] = []  # one, or none


def torch_world() -> TorchWorld | None:
    """Return torch's own record, if it is told of groups."""
    return _torch_worlds[0] if _torch_worlds else None


def keep_in_step(world: TorchWorld | None) -> None:
    """From now on tell *world* of every group that is handed out, and taken back; None: nobody."""
    _torch_worlds[:] = [] if world is None else [world]


def hand_out_world(view: ProcessGroup, store: stores.Store | None) -> None:
    """Note *view* as that of the world, whose ranks share the *store*."""
    for world in _torch_worlds:
        if handed_out.world is not None:
            world.remove(handed_out.world)
    handed_out.world, handed_out.store = view, store
    _tell_torch(view)


def hand_out(view: ProcessGroup) -> None:
    """Note *view*, of a subgroup."""
    handed_out.subgroups[view.core.name] = view
    _tell_torch(view)


def _tell_torch(view: ProcessGroup) -> None:
    for world in _torch_worlds:
        world.add(view)


def world_view() -> ProcessGroup | None:
    """Return the view of the world, or None when this frontend has not initialised it or it was closed since."""
    world = handed_out.world
    return world if world is not None and world.core.is_alive else None


def world_of(caller: Caller) -> ProcessGroup:
    """Return the view of the world, which must be initialised."""
    world = world_view()
    if world is None:
        raise caller.explain(
            StateError("the default process group is not initialised\nCall init_process_group first, on every rank.")
        )
    return world


def is_world(view: Any) -> bool:
    """Tell whether *view* is that of the world, which may be closed by now, but is not forgotten."""
    return handed_out.world is not None and getattr(view, "core", None) is handed_out.world.core


def next_number() -> str:
    """Return the name, a number, of the next group, on which all ranks have agreed."""
    number = max([handed_out.numbered, *(world.group_count for world in _torch_worlds)])
    handed_out.numbered = number + 1
    for world in _torch_worlds:
        world.group_count = number + 1
    return str(number)


def group_count() -> int:
    """Return the number of groups on which all ranks have agreed since the initialisation, the world included."""
    return 0 if world_view() is None else max([handed_out.numbered, *(world.group_count for world in _torch_worlds)])


def views() -> list[ProcessGroup]:
    """Return the world's view and those of the subgroups this process is in, in the order they were made."""
    return ([] if handed_out.world is None else [handed_out.world]) + list(handed_out.subgroups.values())


def named(name: str) -> ProcessGroup | None:
    """Return the group called *name*, or None."""
    return next((view for view in views() if view.group_name == name), None)


def called(caller: Caller, group_name: str) -> ProcessGroup:
    """Return the group called *group_name*, which there must be."""
    found = named(group_name)
    if found is None:
        raise caller.explain(StateError(f"group_name must be that of a group this process is in, got {group_name!r}"))
    return found


def find(tag: str, ranks: Sequence[int]) -> ProcessGroup | None:
    """Return the first group with *tag* whose world ranks are *ranks* in any order; an empty tag is any but a user's."""
    prefixed = tag if tag == "" or tag.startswith(("ptd:", "user:")) else f"user:{tag}"
    for view in views():
        fits = view.tag.startswith("ptd:") if tag == "" else view.tag == prefixed
        if fits and sorted(view.core.ranks) == sorted(ranks):
            return view
    return None


def is_registered(view: Any) -> bool:
    """Tell whether *view* was handed out and not destroyed since. Its group may have been handed out again, as another object."""
    core = getattr(view, "core", None)  # whoever is outside a group has a number for it
    return core is not None and any(core is one.core for one in views())


def is_apart(view: ProcessGroup) -> bool:
    """Tell whether *view* is of a living group that met by itself, and is none of the world's."""
    return view.core.is_alive and groups.find_group(view.core.name) is not view.core


def check_open(caller: Caller, view: ProcessGroup) -> None:
    """Raise for the view of a group that was destroyed."""
    if not (is_registered(view) or is_apart(view)):
        raise caller.explain(ArgumentError(f"{{group}} must be a process group that was not destroyed, got {view!r}"))


def check_of_world(caller: Caller, view: ProcessGroup) -> None:
    """Raise unless the ranks of *view* are the world's."""
    check_open(caller, view)
    if is_apart(view):
        raise caller.explain(
            UnsupportedError(f"the torch frontend makes groups of the world's ranks alone, got {{group}} {view!r}")
        )


def default_store(caller: Caller) -> stores.Store:
    """Return the store of the world's ranks: the one they met through, or one made when the first rank asks."""
    world_of(caller)
    if handed_out.store is None:
        handed_out.store = stores.LocalStore(f"world {groups.world_token(caller)}")
    return handed_out.store


def store_of(caller: Caller, view: ProcessGroup) -> Store:
    """Return the part of the world's store that is *view*'s, the whole of it for the world."""
    check_open(caller, view)
    if is_apart(view):
        own: Store = view.get_group_store()
        return own
    whole = default_store(caller)
    return show(whole if is_world(view) else stores.PrefixStore(view.core.name, whole))


def forget_all() -> list[ProcessGroup]:
    """Forget the world and return the subgroups' views, newest first."""
    subgroups = list(reversed(handed_out.subgroups.values()))
    if isinstance(handed_out.store, stores.LocalStore):
        handed_out.store.close()
    handed_out.__init__()  # type: ignore[misc]  # everything as it was before the initialisation
    for world in _torch_worlds:
        world.clear()
    return subgroups


def forget(view: ProcessGroup) -> None:
    """Forget the view of a subgroup."""
    found = handed_out.subgroups.pop(view.core.name, view)
    for world in _torch_worlds:
        world.remove(found)
