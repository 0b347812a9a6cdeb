"""Making and destroying groups, and translating ranks between them and the world."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from itertools import islice
from operator import index
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import RankError, ShimError, UnsupportedError
from shim.frontends.torch.distributed import _groups
from shim.frontends.torch.distributed._backend import backend_of
from shim.frontends.torch.distributed._errors import ArgumentTypeError, DefaultGroupMissingError
from shim.frontends.torch.distributed._groups import GroupMember, ProcessGroup
from shim.frontends.torch.distributed._meeting import meeting_place
from shim.frontends.torch.distributed._options import (
    check_init,
    given,
    refuse_device,
    refuse_option,
    seconds_of,
)

__all__ = ["destroy", "end", "group_rank", "initialize", "make_group", "rank_in", "size_of", "world_rank"]


def initialize(
    caller: Caller,
    backend: str | None,
    init_method: str | None,
    timeout: timedelta | None,
    world_size: int,
    rank: int,
    store: Any,
    group_name: str,
    pg_options: Any,
    device_id: Any,
    ranks: list[int] | None,
) -> None:
    """Do what ``init_process_group`` documents; *group_name* is what the view of the world is called."""
    check_init(caller, init_method, store, world_size, rank, pg_options, device_id, ranks)
    name = backend_of(caller, backend)
    seconds = seconds_of(caller, timeout)
    existing = groups.find_group(groups.WORLD_NAME)
    if timeout is not None and existing is not None and existing.timeout != seconds:
        raise caller.explain(
            UnsupportedError(
                f"timeout must be None or {existing.timeout:g} s in the torch frontend: another frontend has made the "
                f"world, whose shared_memory engine keeps its timeout, got {timeout}"
            )
        )
    place = meeting_place(caller, init_method, store, rank, world_size, seconds)
    world = groups.enter_world(
        caller,
        _groups.FRONTEND,
        rank=given(place.rank),
        world_size=given(place.world_size),
        init_method=place.init_method,
        store=place.store,
        backend=name,
        timeout=seconds,
    )
    _groups.set_world(world, group_name, name, place.core_store)


def make_group(
    caller: Caller,
    ranks: Sequence[int] | None,
    timeout: timedelta | None,
    backend: str | None,
    pg_options: Any,
    use_local_synchronization: bool,
    group_desc: str | None,
    device_id: Any,
    sort_ranks: bool,
    tag: str = "",
) -> Any:
    """Do what ``new_group`` documents; where this process has one with a user's *tag* and the ranks, that is it.

    All ranks agree on a group that every rank is asked for before it can be found: those outside do not know what the
    members find. One that is refused on a rank is refused on all.
    """
    world = _groups.view_of(caller, None)
    with nullcontext() if use_local_synchronization else groups.refusals_told(world.core):
        members = _members(caller, ranks, sort_ranks)
        if members is None:
            members = list(world.core.ranks)
        _require_in_world(caller, members, world.core)
        name = _groups.next_name_of(tuple(members)) if use_local_synchronization else ""
        refuse_option(caller, "pg_options", pg_options)
        refuse_device(caller, "device_id", device_id)
        seconds = seconds_of(caller, timeout)
        backend = backend_of(caller, backend) if backend else world.backend
    number = None
    if not use_local_synchronization:
        name, _ = groups.agree_on_group(caller, members, world.core)
        number = _groups.next_number()
    elif world.core.ranks[world.core.rank] not in members:
        return None
    found = _groups.find(f"user:{tag}", members) if tag else None
    if found is not None:
        return found
    core = groups.new_group(caller, members, name=name, backend=backend, timeout=seconds)
    if core.rank < 0:
        return GroupMember.NON_GROUP_MEMBER
    return _groups.open_view(
        core, number or core.name, group_desc or "undefined", backend, f"user:{tag}" if tag else ""
    )


def destroy(caller: Caller, group: Any) -> None:
    """Do what ``destroy_process_group`` documents."""
    if _groups.is_outsider(group):
        return
    existing = _groups.views()
    if group is None and not existing:
        raise caller.explain(DefaultGroupMissingError("the default process group is not initialised"))
    if group is None or (existing and group is existing[0]):
        for view in [*_groups.forget_all(), existing[0]]:
            if view.core.name != groups.WORLD_NAME:  # that one closes when no frontend needs it
                groups.close_group(view.core)
        groups.leave_world(_groups.FRONTEND)
        return
    groups.close_group(_groups.member_of(caller, group).core)
    _groups.forget(group)


def end(view: Any) -> None:
    """Do what ``ProcessGroup.shutdown`` documents. The world itself closes when no other frontend needs it."""
    if not _groups.is_world(view):
        if view.core.name != groups.WORLD_NAME:  # else it was left before
            groups.close_group(view.core)
        return
    for one in reversed(_groups.views()):
        if one.core.name != groups.WORLD_NAME:
            groups.close_group(one.core)
    view.core = groups.ended(view.core)
    groups.leave_world(_groups.FRONTEND)


def rank_in(caller: Caller, group: Any) -> int:
    """Return the caller's rank in *group*, -1 outside it."""
    return -1 if _groups.is_outsider(group) else _groups.view_of(caller, group).core.rank


def size_of(caller: Caller, group: Any) -> int:
    """Return the number of *group*'s ranks, -1 outside it."""
    return -1 if _groups.is_outsider(group) else _groups.view_of(caller, group).core.size


def group_rank(caller: Caller, group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in *group* of *global_rank*."""
    core = _groups.member_of(caller, group).core
    try:
        return core.group_rank(global_rank)
    except ShimError as error:
        raise caller.explain(error, core) from None


def world_rank(caller: Caller, group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of *group*'s *group_rank*."""
    core = _groups.member_of(caller, group).core
    try:
        return core.world_rank(group_rank)
    except ShimError as error:
        raise caller.explain(error, core) from None


_MOST = 1 << 16  # more ranks than there can be, which are refused; range(1 << 40) is never listed


def _members(caller: Caller, ranks: Sequence[int] | None, sort_ranks: bool) -> list[int] | None:
    """Return *ranks*, sorted when asked for."""
    if ranks is None:
        return None
    try:
        members = [index(rank) for rank in islice(ranks, _MOST)]
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"ranks must be a list of integers, got {ranks!r}")) from None
    return sorted(members) if sort_ranks else members


def _require_in_world(caller: Caller, members: Sequence[int], world: groups.ProcessGroup) -> None:
    """Raise for ranks that were in the world until it shrank; core knows those that never were."""
    for rank in members:
        if rank not in world.ranks and 0 <= rank < groups.world(caller).size:
            raise caller.explain(RankError(f"ranks must be in {list(world.ranks)}, got {rank}"), world)
