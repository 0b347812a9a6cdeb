"""The world and its process groups: who belongs to them, under which rank, and for how long.

There is one world per process, shared by all frontends: the first frontend to initialise makes it, the others join it,
and it closes when the last one leaves. A subgroup is made by its members alone or by the whole world at once, depending
on whether it is given a name; see ``new_group``.
"""

from __future__ import annotations

import atexit
import os
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from shim import _native
from shim.core import last_words, rendezvous
from shim.core.agreement import agree, check_members, has_lost_ranks, name_after_loss, refusals_told
from shim.core.callers import Caller
from shim.core.engines import Place, open_engine
from shim.core.engines.absent import EngineAbsence
from shim.core.engines.base import Engine
from shim.errors import (
    ArgumentError,
    NotMemberError,
    RankError,
    ShimError,
    StateError,
)

__all__ = [
    "DEFAULT_TIMEOUT",
    "WORLD_NAME",
    "ProcessGroup",
    "agree_on_group",
    "all_groups",
    "close_group",
    "close_world",
    "ended",
    "enter_world",
    "find_group",
    "is_initialized",
    "leave_world",
    "new_group",
    "open_apart",
    "refusals_told",
    "survivors",
    "world",
    "world_of",
    "world_token",
]

DEFAULT_TIMEOUT = 1800.0  # seconds; what torch and paddle document
WORLD_NAME = "world"


class ProcessGroup:
    """An ordered set of ranks of the world that communicate; every frontend's group is a view of one.

    ``ranks`` are world ranks in the order of their group ranks, which ``group_ranks`` has by them; ``rank`` is the caller's group rank, -1 outside.
    ``backend`` is the string the user passed, which names no engine; ``timeout`` is in seconds.
    ``engine`` serves the group while it ``is_alive``; what is asked of it then raises NotMemberError outside it, StateError once it is destroyed.
    """

    def __init__(
        self, name: str, ranks: tuple[int, ...], rank: int, engine: Engine | None, backend: str, timeout: float
    ) -> None:
        self.name = name
        self.ranks = ranks
        self.group_ranks = {rank: group_rank for group_rank, rank in enumerate(ranks)}
        self.rank = rank
        self.size = len(ranks)
        self.backend = backend
        self.timeout = timeout
        self.description = ""
        self.is_alive = engine is not None
        self.engine: Engine = EngineAbsence(self._why_there_is_no_engine) if engine is None else engine

    def world_rank(self, group_rank: int) -> int:
        """Return the world rank of *group_rank*."""
        if not hasattr(group_rank, "__index__") or group_rank not in range(self.size):
            raise RankError(f"group rank must be in 0..{self.size - 1}, got {group_rank!r}")
        return self.ranks[group_rank]

    def group_rank(self, world_rank: int) -> int:
        """Return the group rank of *world_rank*."""
        try:
            return self.ranks.index(world_rank)
        except ValueError:
            raise RankError(
                f"rank {world_rank} is not in group {self.name!r}, whose ranks are {list(self.ranks)}"
            ) from None

    def _why_there_is_no_engine(self) -> ShimError:
        if self.rank < 0:
            mine = _state.world.rank if _state.world else "?"
            which = f"group {self.name!r}, whose ranks are {list(self.ranks)}" if self.ranks else "the given group"
            return NotMemberError(f"rank {mine} does not belong to {which}")
        return StateError(f"group {self.name!r} has been destroyed\nCreate it again before using it.")

    def _close(self, why: str = "") -> None:
        if self.is_alive:
            engine, self.is_alive = self.engine, False
            self.engine = EngineAbsence(self._why_there_is_no_engine)
            engine.close(why)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.name!r} rank {self.rank} of {self.size}>"


@dataclass
class _State:
    """What this process knows of its world."""

    world: ProcessGroup | None = None
    key: str = ""
    token: str = ""
    process: int = 0  # the one that entered the world; a forked child has a copy of this, and no engines
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    apart: list[ProcessGroup] = field(default_factory=list)  # of no world, to be closed when the process ends
    frontends: set[str] = field(default_factory=set)
    created: int = 0  # of the last group on which all ranks agreed
    remade: Counter[tuple[int, ...]] = field(default_factory=Counter)  # groups by members, after a loss


_state = _State()


def is_initialized() -> bool:
    """Tell whether this process is a rank of a world."""
    return _state.world is not None


def world_of(frontend: str) -> ProcessGroup | None:
    """Return the group of all ranks, or None where *frontend* is not in it."""
    return _state.world if frontend in _state.frontends else None


def world(caller: Caller) -> ProcessGroup:
    """Return the group of all ranks. Raises StateError before initialisation."""
    if _state.world is None:
        raise caller.explain(StateError("the world is not initialised\nInitialise it first, on every rank."))
    return _state.world


def enter_world(
    caller: Caller,
    frontend: str,
    *,
    rank: int | None = None,
    world_size: int | None = None,
    init_method: str | None = None,
    store: rendezvous.Meeting | None = None,
    backend: str = "",
    timeout: float = DEFAULT_TIMEOUT,
) -> ProcessGroup:
    """Make this process a rank of the world, waiting up to *timeout* seconds for the others, or join what is there.

    What is there must have the *rank* and *world_size* that are given, or that *init_method* gives. With a *store*, which
    needs both, the ranks meet through it; where the world is there already, it is not used.
    """
    try:
        if _state.world is None:
            _open_world(_identity(rank, world_size, init_method, store), backend, timeout)
        else:
            _check_same_place(_state.world, rank, world_size, init_method)
    except ShimError as error:
        raise caller.explain(error) from None
    _state.frontends.add(frontend)
    return world(caller)


def _identity(
    rank: int | None, world_size: int | None, init_method: str | None, store: rendezvous.Meeting | None
) -> rendezvous.Identity:
    if store is None:
        return rendezvous.locate(rank, world_size, init_method)
    if rank is None or world_size is None:
        raise ArgumentError(f"store needs rank and world_size, got rank {rank} and world_size {world_size}")
    return rendezvous.locate_at(store, rank, world_size)


def _check_same_place(there: ProcessGroup, rank: int | None, world_size: int | None, init_method: str | None) -> None:
    if init_method is not None:
        me = rendezvous.locate(rank, world_size, init_method)
        rank, world_size = me.rank, me.size
    if rank not in (None, there.rank) or world_size not in (None, there.size):
        raise StateError(
            f"the world is already initialised with rank {there.rank} of {there.size}, "
            f"got rank {rank} and world size {world_size}"
        )


def _open_world(me: rendezvous.Identity, backend: str, timeout: float) -> None:
    ranks = tuple(range(me.size))
    engine = open_engine(Place(me.key, WORLD_NAME, ranks, me.rank, timeout))
    _state.token = _agreed_token(engine, me.size)
    _state.world = ProcessGroup(WORLD_NAME, ranks, me.rank, engine, backend, timeout)
    last_words.begin_to_listen()
    _state.key = me.key
    _state.process = os.getpid()
    _state.groups = {WORLD_NAME: _state.world}
    _state.created, _state.remade = 0, Counter()


def _agreed_token(engine: Engine, size: int) -> str:
    """Return a name for this world that no other ever has, not even one of the same job under the same key."""
    token = bytearray(secrets.token_bytes(16))
    if size > 1:
        engine.broadcast(token, 0, now=True)
    return token.hex()


def leave_world(frontend: str) -> None:
    """Let *frontend* go; with the last one, every group is closed."""
    _state.frontends.discard(frontend)
    if not _state.frontends:
        _close_all()


def agree_on_group(
    caller: Caller, ranks: Iterable[int] | None, everyone: ProcessGroup | None = None
) -> tuple[str, tuple[int, ...]]:
    """Return the name and members of a new group of *ranks* (None: all), on which all ranks of *everyone* agree.

    Each of them calls this, in the order of its other collectives; None is the world. Groups that have no rank in common may be
    named by their own ranks at once. When the ranks are wrong on one of them, it raises RankError or ArgumentError, and
    the others, as all do where they disagree, MismatchError. After a loss nobody is asked: its members alone make the group.
    """
    parent = world(caller)
    everyone = parent if everyone is None else everyone
    _require_own_world(caller, parent)
    with refusals_told(everyone):
        members = _members(caller, ranks, everyone)
        check_members(caller, everyone, members)
    try:
        if has_lost_ranks(everyone):
            return name_after_loss(members, _state.remade), members
        made, is_alone = agree(everyone, members, _state.created)
    except ShimError as error:
        raise caller.explain(error, everyone) from None
    _state.created = made + 1
    name = f"group_{_state.created}" if is_alone else f"group_{_state.created}_{members[0]}"
    return (name if everyone is parent else f"{everyone.name}_{name}"), members


def new_group(
    caller: Caller,
    ranks: Iterable[int] | None = None,
    *,
    name: str | None = None,
    backend: str | None = None,
    timeout: float | None = None,
) -> ProcessGroup:
    """Make a group of the world ranks *ranks* (None: all), in the order given.

    Without a *name*, every rank of the world must call this, whether it is a member or not, as it must ``agree_on_group``,
    which it begins with; with one, only the members do. Members wait for each other. Raises RankError or ArgumentError
    for ranks that are not in the world or occur twice, StateError for a name that is taken.
    """
    parent = world(caller)
    name, members = agree_on_group(caller, ranks) if name is None else (name, _members(caller, ranks, parent))
    _require_own_world(caller, parent)
    try:
        if name in _state.groups:
            raise StateError(f"a group named {name!r} already exists")
        limit = parent.timeout if timeout is None else timeout
        rank = members.index(parent.rank) if parent.rank in members else -1
        engine = None
        if rank >= 0:
            engine = open_engine(Place(f"{_state.key}/{name}", name, members, rank, limit, parent.engine))
    except ShimError as error:
        raise caller.explain(error, parent) from None
    group = ProcessGroup(name, members, rank, engine, parent.backend if backend is None else backend, limit)
    _state.groups[name] = group
    return group


def _require_own_world(caller: Caller, parent: ProcessGroup) -> None:
    if _state.process != os.getpid():
        raise caller.explain(
            StateError(
                f"group {parent.name!r} was made before this process was forked and belongs to its parent\n"
                "Initialise in the process that communicates, or start it with the spawn method."
            ),
            parent,
        )


def world_token(caller: Caller) -> str:
    """Return this world's name, which its ranks know, and no other process on the host; no two worlds share one."""
    world(caller)
    return _state.token


def _members(caller: Caller, ranks: Iterable[int] | None, everyone: ProcessGroup) -> tuple[int, ...]:
    """Return the members of a new group, which are some of *everyone*'s."""
    members = everyone.ranks if ranks is None else tuple(ranks)
    try:
        for rank in members:
            if not isinstance(rank, int) or isinstance(rank, bool):
                raise ArgumentError(f"{{ranks}} must be integers, got {rank!r}")
            if rank not in everyone.ranks:
                raise RankError(f"{{ranks}} must be in {_shown(everyone.ranks)}, got {rank}")
        if not members:
            raise ArgumentError("{ranks} must name at least one rank, got an empty list")
        if len(set(members)) != len(members):
            raise ArgumentError(f"{{ranks}} must be different from each other, got {list(members)}")
    except ShimError as error:
        raise caller.explain(error, everyone) from None
    return members


def _shown(ranks: tuple[int, ...]) -> str:
    return f"0..{len(ranks) - 1}" if ranks == tuple(range(len(ranks))) else str(list(ranks))


def open_apart(
    caller: Caller,
    rank: int,
    size: int,
    *,
    init_method: str | None = None,
    store: rendezvous.Meeting | None = None,
    name: str = "",
    backend: str = "",
    timeout: float = DEFAULT_TIMEOUT,
) -> ProcessGroup:
    """Make a group of *size* processes that meet at *init_method* or *store* and have nothing to do with the world.

    Its world ranks are its group ranks. Its maker closes it with ``close_group``; the end of the process does too.
    """
    try:
        me = rendezvous.locate(rank, size, init_method) if store is None else rendezvous.locate_at(store, rank, size)
        ranks = tuple(range(me.size))
        engine = open_engine(Place(f"{me.key} {name}", name or me.key, ranks, me.rank, timeout))
    except ShimError as error:
        raise caller.explain(error) from None
    group = ProcessGroup(name or me.key, ranks, me.rank, engine, backend, timeout)
    _state.apart.append(group)
    return group


def find_group(name: str) -> ProcessGroup | None:
    """Return the group called *name*, or None."""
    return _state.groups.get(name)


def all_groups() -> list[ProcessGroup]:
    """Return the groups of this process's world, itself first; none where there is no world."""
    return list(_state.groups.values())


def survivors() -> list[int]:
    """Return the world's ranks that have neither died nor left it, as far as is known here. Raises StateError where there is no world."""
    parent = world(Caller("shim.survivors"))
    return [rank for rank in parent.ranks if rank == parent.rank or not parent.engine.has_ended(rank)]


def close_group(group: ProcessGroup) -> None:
    """Leave *group* and forget it. Closing the world closes every group."""
    if group is _state.world:
        close_world()
    else:
        if find_group(group.name) is group:
            del _state.groups[group.name]
        elif group in _state.apart:
            _state.apart.remove(group)
        group._close()


def ended(group: ProcessGroup) -> ProcessGroup:
    """Return what a frontend that has left *group* keeps of it: its ranks and name, while others may still use it."""
    return ProcessGroup(group.name, group.ranks, group.rank, None, group.backend, group.timeout)


def close_world() -> None:
    """Close every group and forget which frontends had initialised the world; nothing happens where there is none."""
    _state.frontends.clear()
    _close_all()


def _close_all(why: str = "") -> None:
    for group in reversed(_state.groups.values()):
        group._close(why)
    _state.groups = {}
    _state.world = None
    _state.key = ""
    last_words.end_listening()


def _close_at_the_end(why: str) -> None:
    for group in reversed(_state.apart):
        group._close(why)
    _close_all(why)


atexit.register(lambda: _close_at_the_end(last_words.reason()))
_native.set_before_exec(lambda: _close_at_the_end("os.exec: its process runs another program now"))
