"""Making and destroying groups, and translating ranks between them and the world."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from itertools import islice
from operator import index
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, RankError, ShimError, StateError, UnsupportedError
from shim.frontends.torch._calls.devices import bound_device
from shim.frontends.torch._calls.options import refuse_option, seconds_of
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError, DefaultGroupMissingError
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.backends import backend_of
from shim.frontends.torch._groups.group_arguments import is_outsider, member_of, view_of
from shim.frontends.torch._groups.process_group import GroupMember, ProcessGroup, open_view
from shim.frontends.torch._methods.refused_features import INSTEAD_OF_RECONFIGURING


def check_init(
    caller: Caller,
    init_method: str | None,
    store: Any,
    world_size: int,
    rank: int,
    pg_options: Any,
    device_id: Any,
    ranks: list[int] | None,
) -> Any:
    """Return the accelerator's device that *device_id* names, if any.

    Raises for a second initialisation, for arguments that exclude each other, and for those without a meaning here.
    """
    if registry.world_view() is not None:
        raise caller.explain(
            StateError("the default process group is initialised already\nCall destroy_process_group before.")
        )
    if store is not None and init_method is not None:
        raise caller.explain(ArgumentAssertionError("store and init_method must not both be given"))
    if store is not None and (world_size <= 0 or rank < 0):
        raise caller.explain(
            ArgumentAssertionError(f"store needs world_size and rank, got world_size {world_size} and rank {rank}")
        )
    refuse_option(caller, "pg_options", pg_options)
    refuse_option(caller, "_ranks", ranks)
    return bound_device(caller, device_id)


def refuse_reconfiguring(caller: Caller, enable_reconfigure: Any) -> None:
    """Raise where the ranks of the world are to be replaced later."""
    if enable_reconfigure:
        text = f"enable_reconfigure must be False: the torch frontend's groups keep their ranks, got {enable_reconfigure!r}"
        raise caller.explain(UnsupportedError(f"{text}\n{INSTEAD_OF_RECONFIGURING}"))


def check_world_timeout(caller: Caller, timeout: timedelta | None, seconds: float) -> None:
    """Raise for a *timeout*, of *seconds*, that is not the one of the world which another frontend has made."""
    existing = groups.find_group(groups.WORLD_NAME)
    if timeout is not None and existing is not None and existing.timeout != seconds:
        raise caller.explain(
            UnsupportedError(
                f"timeout must be None or {existing.timeout:g} s in the torch frontend: another frontend has made the "
                f"world, whose engine keeps its timeout, got {timeout}"
            )
        )


def given(number: int) -> int | None:
    """Return *number*, or None for torch's -1, which stands for a number that was not given."""
    return None if number == -1 else number


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
) -> ProcessGroup | Any:
    """Do what ``new_group`` documents; where this process has one with a user's *tag* and the ranks, that is it.

    All ranks agree on a group that every rank is asked for before it can be found: those outside do not know what the
    members find. One that is refused on a rank is refused on all.
    """
    world = registry.world_of(caller)
    with nullcontext() if use_local_synchronization else groups.refusals_told(world.core):
        members = _members(caller, ranks, sort_ranks)
        if members is None:
            members = list(world.core.ranks)
        _require_in_world(caller, members, world.core)
        name = groups.next_name_of(members) if use_local_synchronization else ""
        refuse_option(caller, "pg_options", pg_options)
        device = _device_in(caller, world, device_id)
        seconds = seconds_of(caller, timeout)
        backend = backend_of(caller, backend) if backend else world.backend
    number = None
    if not use_local_synchronization:
        name, _ = groups.agree_on_group(caller, members, world.core)
        number = registry.next_number()
    elif world.core.ranks[world.core.rank] not in members:
        return None
    found = registry.find(f"user:{tag}", members) if tag else None
    if found is not None:
        return found
    core = groups.new_group(caller, members, name=name, backend=backend, timeout=seconds)
    if core.rank < 0:
        return GroupMember.NON_GROUP_MEMBER
    tag = f"user:{tag}" if tag else ""
    return open_view(core, number or core.name, group_desc or "undefined", backend, tag, device)


def find_or_make(caller: Caller, tag: str, ranks: list[int], stride: int) -> ProcessGroup:
    """Return the group with *tag* of those *stride* of *ranks* that the caller is among; its members call."""
    if stride < 1 or len(ranks) % stride:
        raise caller.explain(ArgumentError(f"stride must divide the {len(ranks)} ranks, got {stride}"))
    world = registry.world_of(caller).core
    parts = [sorted(ranks[start : start + stride]) for start in range(0, len(ranks), stride)]
    mine = [part for part in parts if world.ranks[world.rank] in part]
    if not mine:
        raise caller.explain(ArgumentAssertionError(f"ranks must include the caller's own, got {ranks}"), world)
    found = registry.find(tag, mine[0])
    if found is not None:
        return found
    if tag == "":
        raise caller.explain(ArgumentError("tag must not be empty where no such group exists"), world)
    # No rank makes the parts of others here, so the members of each meet under a name that they alone find.
    made: ProcessGroup = make_group(caller, mine[0], None, None, None, True, None, None, True, tag)
    return made


def destroy(caller: Caller, group: Any) -> None:
    """Do what ``destroy_process_group`` documents."""
    if is_outsider(group):
        return
    existing = registry.views()
    if group is None and not existing:
        raise caller.explain(DefaultGroupMissingError("the default process group is not initialised"))
    if group is None or registry.is_world(group):
        for view in [*registry.forget_all(), existing[0]]:
            if view.core.name != groups.WORLD_NAME:  # that one closes when no frontend needs it
                groups.close_group(view.core)
        groups.leave_world(registry.FRONTEND)
        return
    groups.close_group(member_of(caller, group).core)
    registry.forget(group)


def rank_in(caller: Caller, group: Any) -> int:
    """Return the caller's rank in *group*, -1 outside it."""
    return -1 if is_outsider(group) else view_of(caller, group).core.rank


def size_of(caller: Caller, group: Any) -> int:
    """Return the number of *group*'s ranks, -1 outside it."""
    return -1 if is_outsider(group) else view_of(caller, group).core.size


def group_rank(caller: Caller, group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in *group* of *global_rank*."""
    core = member_of(caller, group).core
    try:
        return core.group_rank(global_rank)
    except ShimError as error:
        raise caller.explain(error, core) from None


def world_rank(caller: Caller, group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the world of *group*'s *group_rank*."""
    core = member_of(caller, group).core
    try:
        return core.world_rank(group_rank)
    except ShimError as error:
        raise caller.explain(error, core) from None


def one_group_rank(caller: Caller, group: Any, global_rank: int | None, rank: int | None) -> int:
    """Return the group rank of *global_rank* or *rank* in *group*, of which exactly one must be given."""
    if (global_rank is None) == (rank is None):
        raise caller.explain(
            ArgumentError(f"either global_rank or group_rank must be given, got {global_rank} and {rank}")
        )
    if rank is None:
        return group_rank(caller, group, global_rank)  # type: ignore[arg-type]  # one is given
    return rank


def local_rank(caller: Caller, fallback: Any) -> int:
    """Return LOCAL_RANK, which launchers set, or *fallback*."""
    text = os.environ.get("LOCAL_RANK")
    if text is None and fallback is None:
        raise caller.explain(
            StateError(
                "LOCAL_RANK is not set\nStart the ranks with a launcher such as `shim run`, or give fallback_rank."
            )
        )
    try:
        return int(fallback if text is None else text)
    except ValueError:
        raise caller.explain(ArgumentError(f"LOCAL_RANK must be a number, got {text or fallback!r}")) from None


def _device_in(caller: Caller, world: ProcessGroup, device_id: Any) -> Any:
    """Return the device of a new group, which is *world*'s where that has one."""
    device = bound_device(caller, device_id)
    if device is not None and world.bound_device_id not in (None, device):
        raise caller.explain(
            ArgumentAssertionError(f"device_id must be the world's, {world.bound_device_id}, got {device_id!r}")
        )
    return device or world.bound_device_id


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
