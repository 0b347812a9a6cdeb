"""Parts of groups: which ranks go into which, and the groups that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError
from shim.frontends.torch._errors import ArgumentTypeError
from shim.frontends.torch._groups import membership, registry
from shim.frontends.torch._groups.backends import BackendConfig, backend_of
from shim.frontends.torch._groups.process_group import (
    GroupMember,
    ProcessGroup,
    members_of,
    open_view,
    replace_world,
    split_off,
)
from shim.frontends.torch._groups.rank_lists import integer, rank_lists, require_apart

SHRINK_DEFAULT = 0
SHRINK_ABORT = 1


def equal_parts(caller: Caller, whole: ProcessGroup, group_size: int | None) -> list[list[int]]:
    """Return the world's ranks of *whole* in parts of *group_size*; where it is the world, what is refused is told to all."""
    ranks = whole.core.ranks
    with groups.refusals_told(whole.core) if registry.is_world(whole) else nullcontext():
        if group_size is None:
            raise caller.explain(
                ArgumentError(
                    "group_size must be given: its default is the number of accelerators, and there are none here"
                )
            )
        size = integer(caller, "group_size", group_size)
        if size <= 0 or size > len(ranks) or len(ranks) % size:
            raise caller.explain(ArgumentError(f"group_size must divide the {len(ranks)} ranks, got {size}"))
    return [list(ranks[start : start + size]) for start in range(0, len(ranks), size)]


def listed_parts(caller: Caller, ranks_per_subgroup_list: Any) -> list[list[int]]:
    """Return the lists of the world's ranks; what is refused is told to all."""
    world = registry.world_of(caller).core
    with groups.refusals_told(world):
        parts = rank_lists(caller, "ranks_per_subgroup_list", ranks_per_subgroup_list)
        require_apart(caller, "ranks_per_subgroup_list", parts, world.ranks)
    return parts


def make_parts(
    caller: Caller,
    parts: Sequence[Sequence[int]],
    timeout: timedelta | None,
    backend: str | None,
    pg_options: Any,
    group_desc: str | None,
    by_members: bool,
) -> tuple[Any, list[Any]]:
    """Make the groups of *parts*, which all ranks of the world do, or *by_members* alone; return the caller's own, and all."""
    mine, made = None, []
    for part in parts:
        new = membership.make_group(caller, part, timeout, backend, pg_options, by_members, group_desc, None, True)
        if isinstance(new, ProcessGroup):
            mine = new
        made.append(GroupMember.NON_GROUP_MEMBER if new is None else new)
    return mine, made


def own_part(
    caller: Caller,
    parent: ProcessGroup,
    name: str,
    parts: Sequence[Sequence[int]],
    seconds: float,
    backend: str,
    group_desc: str | None,
) -> ProcessGroup | None:
    """Make the group of the one of *parts*, group ranks of *parent*, that the caller is in; *name* is the division's."""
    for place, part in enumerate(parts):
        if parent.core.rank in part:
            return split_off(caller, parent, f"{name}:{place}", sorted(part), seconds, backend, None, group_desc)
    return None


def part_of_backend(caller: Caller, whole: str, backend: str | None) -> str:
    """Return *backend*, which must be, for each of its devices, that of *whole*; None is *whole* itself."""
    name = whole if backend is None else backend_of(caller, str(backend))
    parents = BackendConfig(whole).get_device_backend_map()
    for device, one in BackendConfig(name).get_device_backend_map().items():
        if parents.get(device) != one:
            raise caller.explain(
                ArgumentError(f"backend must be a part of the parent group's, {whole!r}, got {name!r} for {device}")
            )
    return name


def remaining_ranks(caller: Caller, old: groups.ProcessGroup, ranks_to_exclude: Any) -> list[int]:
    """Return the group ranks of *old* but *ranks_to_exclude*; there must be some."""
    if not isinstance(ranks_to_exclude, list):
        raise caller.explain(ArgumentTypeError(f"ranks_to_exclude must be a list, got {ranks_to_exclude!r}"))
    excluded = rank_lists(caller, "ranks_to_exclude", [ranks_to_exclude])
    require_apart(caller, "ranks_to_exclude", excluded, range(old.size))
    remaining = [rank for rank in range(old.size) if rank not in ranks_to_exclude]
    if not remaining:
        raise caller.explain(ArgumentError(f"ranks_to_exclude must leave a rank, got {ranks_to_exclude}"), old)
    return remaining


def check_flags(caller: Caller, shrink_flags: Any) -> None:
    """Raise for *shrink_flags* that there are not."""
    if shrink_flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise caller.explain(
            ArgumentError(f"shrink_flags must be SHRINK_DEFAULT or SHRINK_ABORT, got {shrink_flags!r}")
        )


def replace_by(caller: Caller, old: ProcessGroup, remaining: Sequence[int], name: str) -> ProcessGroup:
    """Make the group of the group ranks *remaining* of *old*, who meet under *name*, and destroy *old*, with all if it is the world."""
    if old.core.rank not in remaining:
        raise caller.explain(
            StateError(f"rank {old.core.rank} is excluded and must not call this: the ranks that remain do"), old.core
        )
    is_world = registry.is_world(old)
    core = groups.new_group(
        caller, members_of(old, remaining), name=name, backend=old.backend, timeout=old.core.timeout
    )
    if is_world:
        for view in registry.views()[1:]:
            membership.destroy(caller, view)
        return replace_world(core, old)
    membership.destroy(caller, old)
    return open_view(core, f"{old.group_name}:shrunk", old.group_desc, old.backend, device=old.bound_device_id)
