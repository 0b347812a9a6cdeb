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
from contextlib import ExitStack
from typing import TYPE_CHECKING

from shim.core.callers import Caller
from shim.core.engines.choosing import choose, choose_in, open_engine, settled, take_settings, usual
from shim.core.engines.place import Choice, Place
from shim.core.groups import last_words
from shim.core.groups.agreement import agree, check_members, count_name, has_lost_ranks, members_of, refusals_told
from shim.core.groups.connections import connection_for, hosts_of
from shim.core.groups.process_group import STATE, ProcessGroup
from shim.core.job import rendezvous, variables
from shim.core.job.job import Job
from shim.core.job.origin import NO_ORIGIN
from shim.errors import ArgumentError, PeerLostError, ShimError, StateError

if TYPE_CHECKING:
    from shim.core.engines.base import Engine

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
    "next_name_of",
    "open_apart",
    "refusals_told",
    "set_timeout",
    "survivors",
    "world",
    "world_of",
    "world_token",
]

DEFAULT_TIMEOUT = 1800.0  # seconds; what torch and paddle document
WORLD_NAME = "world"


def is_initialized() -> bool:
    """Tell whether this process is a rank of a world."""
    return STATE.world is not None


def world_of(frontend: str) -> ProcessGroup | None:
    """Return the group of all ranks, or None where *frontend* is not in it."""
    return STATE.world if frontend in STATE.frontends else None


def world(caller: Caller) -> ProcessGroup:
    """Return the group of all ranks. Raises StateError before initialisation."""
    if STATE.world is None:
        raise caller.explain(StateError("the world is not initialised\nInitialise it first, on every rank."))
    return STATE.world


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
        if STATE.world is None:
            _open_world(_identity(rank, world_size, init_method, store), backend, timeout)
        else:
            _check_same_place(STATE.world, rank, world_size, init_method)
    except ShimError as error:
        raise caller.explain(error) from None
    STATE.frontends.add(frontend)
    return world(caller)


def _identity(
    rank: int | None, world_size: int | None, init_method: str | None, store: rendezvous.Meeting | None
) -> Job:
    if store is None:
        me = rendezvous.locate(rank, world_size, init_method)
        if me.launcher == rendezvous.NO_LAUNCHER:
            rendezvous.tell_of_missing_launcher()
        return me
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


def _open_world(me: Job, backend: str, timeout: float) -> None:
    if me.rank == 0:
        variables.tell_of_unknown()
    place, choice = _place_of(me, me.key, WORLD_NAME, backend, timeout)
    engine = _opened_at(place, choice)
    _close_first_of_all()
    _close_before_exec()
    STATE.token = me.key if choice.is_rehearsal else _agreed_token(engine, me.size)
    if os.environ.get("SHIM_TRACE"):
        from shim.core.tracing.recorder import name_world  # here, as nobody else needs it

        name_world(STATE.token)
    STATE.world = ProcessGroup(WORLD_NAME, tuple(range(me.size)), me.rank, engine, backend, timeout, choice)
    STATE.control, STATE.hosts = place.control, place.hosts
    last_words.begin_to_listen()
    STATE.process = os.getpid()
    STATE.groups = {WORLD_NAME: STATE.world}
    STATE.created, STATE.by_members = 0, Counter()


def _place_of(
    me: Job, key: str, name: str, backend: str, timeout: float, is_world: bool = True
) -> tuple[Place, Choice]:
    """Return where the ranks of *me*'s job meet, and for which engine: over a network they meet for that already."""
    take_settings()
    choice = choose(backend, me.several_hosts, me.launcher)
    control = connection_for(me, choice, timeout, is_world)
    hosts = hosts_of(control, me.size)
    if control is not None:
        choice = settled(choice, hosts)
        if not choice.is_over_network:
            control.close("they are on one host")
            control = None
    owns = control is not None
    ranks = tuple(range(me.size))
    origin = NO_ORIGIN if owns else me.origin()
    return Place(key, name, ranks, me.rank, timeout, None, origin, choice, control, hosts, owns), choice


def _opened_at(place: Place, choice: Choice) -> Engine:
    """Return the engine at *place*, whose connections are closed where none can be made."""
    try:
        return open_engine(place, choice)
    except BaseException as error:
        if place.control is not None:
            place.control.close(f"no engine could be made: {error or type(error).__name__}".partition("\n")[0])
        raise


def _agreed_token(engine: Engine, size: int) -> str:
    """Return a name for this world that no other ever has, not even one of the same job under the same key."""
    token = bytearray(secrets.token_bytes(16))
    if size > 1:
        engine.broadcast(token, 0, now=True)
    return token.hex()


def leave_world(frontend: str) -> None:
    """Let *frontend* go; with the last one, every group is closed."""
    STATE.frontends.discard(frontend)
    if not STATE.frontends:
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
        members = members_of(caller, ranks, everyone)
        check_members(caller, everyone, members)
    try:
        if has_lost_ranks(everyone):
            return next_name_of(members), members
        made, is_alone = agree(everyone, members, STATE.created)
    except ShimError as error:
        raise caller.explain(error, everyone) from None
    STATE.created = made + 1
    name = f"group_{STATE.created}" if is_alone else f"group_{STATE.created}_{members[0]}"
    return (name if everyone is parent else f"{everyone.name}_{name}"), members


def next_name_of(ranks: Iterable[int]) -> str:
    """Return a name for the next group that the world ranks *ranks* make alone; see ``count_name``."""
    return count_name(tuple(ranks), STATE.by_members)


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
    name, members = agree_on_group(caller, ranks) if name is None else (name, members_of(caller, ranks, parent))
    _require_own_world(caller, parent)
    try:
        if name in STATE.groups:
            raise StateError(f"a group named {name!r} already exists")
        limit = parent.timeout if timeout is None else timeout
        rank = members.index(parent.rank) if parent.rank in members else -1
        backend = parent.backend if backend is None else backend
        hosts = tuple(STATE.hosts[member] for member in members)
        choice, engine = choose_in(parent.choice or usual(), backend, hosts), None
        if rank >= 0:
            key = f"{STATE.token}/{name}"
            place = Place(key, name, members, rank, limit, parent.engine, control=STATE.control, hosts=hosts)
            engine = open_engine(place, choice)
    except ShimError as error:
        raise caller.explain(error, parent) from None
    group = ProcessGroup(name, members, rank, engine, backend, limit, choice)
    STATE.groups[name] = group
    return group


def _require_own_world(caller: Caller, parent: ProcessGroup) -> None:
    if STATE.process != os.getpid():
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
    return STATE.token


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
        place, choice = _place_of(me, f"{me.key} {name}", name or me.key, backend, timeout, is_world=False)
        engine = _opened_at(place, choice)
    except ShimError as error:
        raise caller.explain(error) from None
    group = ProcessGroup(name or me.key, ranks, me.rank, engine, backend, timeout, choice)
    _close_first_of_all()
    _close_before_exec()
    STATE.apart.append(group)
    return group


def set_timeout(group: ProcessGroup, seconds: float) -> None:
    """Have this rank wait for others in *group* for *seconds* from now on. Raises NotMemberError outside it, StateError once it is destroyed."""
    group.set_timeout(seconds)


def find_group(name: str) -> ProcessGroup | None:
    """Return the group called *name*, or None."""
    return STATE.groups.get(name)


def all_groups() -> list[ProcessGroup]:
    """Return the groups of this process's world, itself first; none where there is no world."""
    return list(STATE.groups.values())


def survivors() -> list[int]:
    """Return the world's ranks that have neither died nor left it, as far as is known here.

    Of a host of which a rank is lost, each other rank is asked whether it is there: the whole host may be ending. Raises StateError
    where there is no world, PeerLostError where this rank is on another host than rank 0 and nothing is known without that.
    """
    caller = Caller("shim.survivors")
    parent, control = world(caller), STATE.control

    def is_left(rank: int) -> bool:
        return rank == parent.rank or not (
            parent.engine.has_ended(rank) or (control is not None and control.is_gone(rank))
        )

    if control is not None:
        suspect = {STATE.hosts[rank] for rank in parent.ranks if not is_left(rank)}
        others = [rank for rank in parent.ranks if rank != parent.rank and is_left(rank)]
        control.await_presence([rank for rank in others if STATE.hosts[rank] in suspect])
        if not (control.knows_of_others and is_left(0)):  # which its host sees before its connections tell
            ending = parent.engine.ending_of(0) if control.knows_of_others else f"rank 0{control.ending_of(0)}"
            lost = PeerLostError(f"{ending}: without it nobody knows which other ranks are left")
            lost.ranks = (0,)
            raise caller.explain(lost, parent)
    return [rank for rank in parent.ranks if is_left(rank)]


def close_group(group: ProcessGroup) -> None:
    """Leave *group* and forget it. Closing the world closes every group."""
    if group is STATE.world:
        close_world()
    else:
        if find_group(group.name) is group:
            del STATE.groups[group.name]
        elif group in STATE.apart:
            STATE.apart.remove(group)
        group._close()


def ended(group: ProcessGroup) -> ProcessGroup:
    """Return what a frontend that has left *group* keeps of it: its ranks and name, while others may still use it."""
    return ProcessGroup(group.name, group.ranks, group.rank, None, group.backend, group.timeout)


def close_world() -> None:
    """Close every group and forget which frontends had initialised the world; nothing happens where there is none."""
    STATE.frontends.clear()
    _close_all()


def _close_all(why: str = "", at_the_end: bool = False) -> None:
    """Close all groups of the world, *at the end* those apart from it too, the last first, whichever of them raise."""
    with ExitStack() as closing:
        closing.callback(_forget)
        for group in (*STATE.groups.values(), *(STATE.apart if at_the_end else ())):
            closing.callback(group._close, why)


def _forget() -> None:
    STATE.groups = {}
    STATE.world = STATE.control = None
    last_words.end_listening()


def _close_first_of_all() -> None:
    """Have the end of the process close the groups before what their engines have registered for it, as these were made."""
    atexit.unregister(_close_at_exit)
    atexit.register(_close_at_exit)


def _close_before_exec() -> None:
    from shim._native import set_before_exec  # here, as nothing is to be closed before an engine has loaded it

    set_before_exec(lambda: _close_all("os.exec: its process runs another program now", at_the_end=True))


def _close_at_exit() -> None:
    _close_all(last_words.reason(), at_the_end=True)


atexit.register(_close_at_exit)
