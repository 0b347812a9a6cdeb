"""Groups as paddle code sees them, and the registry of those it has made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from shim.core import groups
from shim.core.callers import Caller, warn_user
from shim.errors import RankError, StateError, UnsupportedError
from shim.frontends._paddle import tasks
from shim.frontends._paddle.errors import ArgumentTypeError, GroupMissingError, RankIndexError

FRONTEND = "paddle"
_WORLD_ID = 0
_WORLD_NAME = "_default_pg"
_LAST_RING = 9  # paddle numbers the groups that are made from 10 on, after the rings of its graphs


class Group:
    """A group of ranks.

    Deviates: a group of one rank is a group like any other, whose member has rank 0.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/new_group_en.html
    """

    def __init__(
        self,
        rank_in_group: int,
        id: int,
        ranks: list[int],
        pg: Any = None,
        name: str | None = None,
    ) -> None:
        self._rank = rank_in_group
        self._id = id
        self._ranks = ranks
        self._process_group = pg
        self._core: groups.ProcessGroup | None = None if pg is None else pg._group._core
        self._name = name

    @property
    def rank(self) -> int:
        """The caller's rank in this group, -1 outside it."""
        return self._rank

    @property
    def ranks(self) -> list[int]:
        """The world ranks of its members, in the order of their group ranks."""
        return self._ranks

    @property
    def nranks(self) -> int:
        """The number of its members."""
        return len(self._ranks)

    @property
    def name(self) -> str | None:
        """Its name."""
        return self._name

    @property
    def process_group(self) -> Any:
        """What serves it, with paddle's own methods; None outside it."""
        return self._process_group

    @property
    def world_size(self) -> int:
        """The number of its members, -1 outside it."""
        return len(self._ranks) if self._rank >= 0 else -1

    @property
    def backend(self) -> str:
        """The backend string it was made with, in upper case."""
        return "" if self._core is None else self._core.backend.upper()

    @property
    def id(self) -> int:
        """Its number, the same on every rank; 0 is the world."""
        return self._id

    def is_member(self) -> bool:
        """Tell whether the caller is in it."""
        return self._rank >= 0

    def get_group_rank(self, rank: int) -> int:
        """Return the rank in this group of the world's *rank*, -1 when the caller is outside.

        Raises: ValueError for a rank outside the group.
        """
        return -1 if self._core is None or self._rank < 0 else self._core.group_rank(rank)

    def get_global_rank(self, rank: int) -> int:
        """Return the rank in the world of this group's *rank*, -1 when the caller is outside.

        Raises: IndexError for a rank outside the group.
        """
        try:
            return -1 if self._core is None or self._rank < 0 else self._core.world_rank(rank)
        except RankError as error:
            raise RankIndexError(str(error)) from None

    def __repr__(self) -> str:
        members = ", ".join(map(str, self._ranks))
        return f"rank: {self._rank}, nranks: {self.nranks}, id: {self._id}, ranks: {members}; name: {self._name}"


class _Registry:
    """The groups made through this frontend and not destroyed, by their ids."""

    groups: dict[int, Group] = {}  # noqa: RUF012  # one per process, like the world itself
    made: int = 0
    shut: set[int] = set()  # noqa: RUF012  # likewise; the ids of groups that are shut down for now


_registry = _Registry()


def _view_of(core: groups.ProcessGroup, id: int, name: str, served_by: Callable[[Group], Any]) -> Group:
    view = Group(core.rank, id, list(core.ranks), None, name)
    view._core = core
    view._process_group = served_by(view) if core.rank >= 0 else None
    return view


def open_world(core: groups.ProcessGroup, served_by: Callable[[Group], Any]) -> Group:
    """Make the view of the world, or return the one there is; *served_by* makes what is its ``process_group``."""
    known = _registry.groups.get(_WORLD_ID)
    if known is None or known._core is not core:
        known = _view_of(core, _WORLD_ID, _WORLD_NAME, served_by)
        _registry.groups.clear()  # the dict stays, as programs may hold it
        _registry.groups[_WORLD_ID] = known
        _registry.made = 0
        _registry.shut = set()
    return known


def next_id() -> int:
    """Return the id of the next group; called before anything about the group can be refused, as refused ones count."""
    _registry.made += 1
    return _LAST_RING + _registry.made


def make_group(
    caller: Caller,
    name: str,
    ranks: list[int],
    backend: str,
    seconds: float,
    id: int,
    served_by: Callable[[Group], Any],
) -> Group:
    """Make the group of *ranks*, whose members wait for each other; other ranks have nothing to do for it, and need not call."""
    core = groups.new_group(caller, ranks, name=name, backend=backend, timeout=seconds)
    made = _view_of(core, id, f"{_WORLD_NAME}{id}", served_by)
    _registry.groups[made.id] = made
    return made


def is_entered() -> bool:
    """Tell whether this frontend has initialised the world, and it was not closed since."""
    world = _registry.groups.get(_WORLD_ID)
    return world is not None and world._core is not None and world._core.is_alive


def find(id: int) -> Group | None:
    """Return the group *id*, or warn and return None."""
    with contextlib.suppress(TypeError):  # what cannot be hashed is no number of a group
        if id in _registry.groups:
            return _registry.groups[id]
    warn_user(f"paddle.distributed.get_group: there is no group {id!r}")
    return None


def groups_by_id() -> dict[int, Group]:
    """Return the registry itself: the world and the groups that were made and not destroyed, by their ids."""
    return _registry.groups


def all_groups() -> list[Group]:
    """Return the world and the groups that were made and not destroyed, in the order in which they were made."""
    return [_registry.groups[id] for id in sorted(_registry.groups)]


def group_of(caller: Caller, group: Any) -> groups.ProcessGroup:
    """Return core's group for a ``group`` argument; None is the world. Raises StateError before initialisation."""
    view = _registry.groups.get(_WORLD_ID) if group is None else group
    if type(view) is not Group:  # else as member_of says, without a call that takes as long as half of this one
        view = member_of(caller, group)
    core = view._core
    if core is None:
        raise caller.explain(ArgumentTypeError(f"{{group}} must be made by new_group, got {group!r}"))
    if _registry.shut and view.id in _registry.shut:
        raise caller.explain(
            StateError(f"group {view.name!r} has been shut down\nCall restart_process_group, on every rank of it.")
        )
    return core


def member_of(caller: Caller, group: Any) -> Group:
    """Return the view for a ``group`` argument; None is the world. Raises StateError before initialisation."""
    if group is None:
        world = _registry.groups.get(_WORLD_ID)
        if world is None:
            raise caller.explain(
                StateError("the global group is not initialised\nCall init_parallel_env first, on every rank.")
            )
        return world
    if isinstance(group, Group):
        return group
    raise caller.explain(
        ArgumentTypeError(f"{{group}} must be a Group or None, got {group!r}\nGroups are made by new_group.")
    )


def destroy(caller: Caller, group: Any) -> list[int]:
    """Leave *group*, or every group and the world when it is the world or None; return the ids of those left."""
    view = member_of(caller, group)
    if _registry.groups.get(view.id) is not view:
        raise caller.explain(GroupMissingError(f"{{group}} must be a group that was not destroyed, got {group!r}"))
    leaving = [view] if view.id != _WORLD_ID else list(reversed(_registry.groups.values()))
    for one in leaving:
        del _registry.groups[one.id]
        _registry.shut.discard(one.id)
        if one.id != _WORLD_ID and one._core is not None:
            groups.close_group(one._core)
    if view.id == _WORLD_ID:
        groups.leave_world(FRONTEND)
    return [one.id for one in leaving]


def _shut_down(view: Group) -> None:
    """Let go of the memory and threads that serve the group, until ``restart``; outside it, nothing happens."""
    core = view._core
    if core is not None and core.is_alive and _registry.groups.get(view.id) is view:
        groups.close_group(core)
        _registry.shut.add(view.id)


def _restart(caller: Caller, view: Group) -> None:
    """Have the group that was shut down served again; its members wait for each other. Others are left as they are."""
    core = view._core
    if core is None or view.id not in _registry.shut:
        return
    view._core = groups.new_group(caller, core.ranks, name=core.name, backend=core.backend, timeout=core.timeout)
    _registry.shut.discard(view.id)


def shut_down_groups(caller: Caller, group: Any) -> None:
    """Shut *group* down, or every group but the world."""
    world = member_of(caller, None)
    chosen = member_of(caller, group)
    if group is not None and chosen is world:
        raise caller.explain(
            UnsupportedError(
                f"group must not be the world, of which the paddle frontend's groups are parts, got {group!r}\n"
                "Call destroy_process_group to leave it."
            )
        )
    leaving = [one for one in all_groups() if one is not world] if group is None else [chosen]
    for one in leaving:
        _shut_down(one)
    tasks.forget([one.id for one in leaving])


def restart_groups(caller: Caller, group: Any) -> None:
    """Restart *group*, or every group that is shut down, in the order in which they were made, the same on every rank."""
    member_of(caller, None)
    for one in all_groups() if group is None else [member_of(caller, group)]:
        _restart(caller, one)
