"""Dividing groups: into subgroups of equal size, of given ranks, and into one without some of its ranks."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from contextlib import nullcontext
from datetime import timedelta
from operator import index
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ArgumentError, ShimError, StateError
from shim.frontends.torch.distributed import _groups, _membership
from shim.frontends.torch.distributed._backend import BackendConfig, backend_of
from shim.frontends.torch.distributed._errors import ArgumentTypeError
from shim.frontends.torch.distributed._groups import ProcessGroup
from shim.frontends.torch.distributed._options import refuse_device, refuse_option, seconds_of

__all__ = ["SHRINK_ABORT", "SHRINK_DEFAULT", "by_enumeration", "of_equal_size", "shrink", "split", "split_one"]

SHRINK_DEFAULT = 0
SHRINK_ABORT = 1


def of_equal_size(
    caller: Caller,
    group_size: int | None,
    group: Any,
    timeout: timedelta | None,
    backend: str | None,
    pg_options: Any,
    group_desc: str | None,
) -> tuple[Any, list[Any]]:
    """Do what ``new_subgroups`` documents."""
    whole = _groups.part_of_world(caller, group)
    ranks = whole.core.ranks
    with groups.refusals_told(whole.core) if whole is _groups.world_view() else nullcontext():
        if group_size is None:
            raise caller.explain(
                ArgumentError(
                    "group_size must be given: its default is the number of accelerators, and there are none here"
                )
            )
        size = _integer(caller, "group_size", group_size)
        if size <= 0 or size > len(ranks) or len(ranks) % size:
            raise caller.explain(ArgumentError(f"group_size must divide the {len(ranks)} ranks, got {size}"))
    parts = [list(ranks[start : start + size]) for start in range(0, len(ranks), size)]
    return _make_parts(caller, parts, timeout, backend, pg_options, group_desc, whole is not _groups.world_view())


def by_enumeration(
    caller: Caller,
    ranks_per_subgroup_list: Any,
    timeout: timedelta | None,
    backend: str | None,
    pg_options: Any,
    group_desc: str | None,
) -> tuple[Any, list[Any]]:
    """Do what ``new_subgroups_by_enumeration`` documents; nothing is made when any of the lists is wrong."""
    world = _groups.view_of(caller, None).core
    with groups.refusals_told(world):
        parts = _lists(caller, "ranks_per_subgroup_list", ranks_per_subgroup_list)
        _require_apart(caller, "ranks_per_subgroup_list", parts, world.ranks)
    return _make_parts(caller, parts, timeout, backend, pg_options, group_desc, False)


def _make_parts(
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
        new = _membership.make_group(caller, part, timeout, backend, pg_options, by_members, group_desc, None, True)
        if isinstance(new, ProcessGroup):
            mine = new
        made.append(_groups.GroupMember.NON_GROUP_MEMBER if new is None else new)
    return mine, made


def split(
    caller: Caller,
    parent_pg: Any,
    split_ranks: Any,
    timeout: timedelta | None,
    pg_options: Any,
    group_desc: str | None,
    backend: str | None,
) -> ProcessGroup | None:
    """Do what ``split_group`` documents."""
    parent = _groups.part_of_world(caller, parent_pg)
    division = _groups.next_name_of(parent.core.ranks)  # counted even when it is refused: the other ranks count it
    parts = _lists(caller, "split_ranks", split_ranks)
    _require_apart(caller, "split_ranks", parts, range(parent.core.size))
    name = parent.backend if backend is None else backend_of(caller, str(backend))
    _require_part_of_backend(caller, name, parent.backend)
    refuse_option(caller, "pg_options", pg_options)
    seconds = parent.core.timeout if timeout is None else seconds_of(caller, timeout)
    for place, part in enumerate(parts):
        if parent.core.rank in part:
            return _make(caller, parent, f"{division}:{place}", sorted(part), seconds, name, None, group_desc)
    return None


def split_one(
    caller: Caller,
    parent: Any,
    ranks: Any,
    timeout: timedelta | None,
    opts: Any,
    group_name: str | None,
    group_desc: str | None,
    device_types: Any,
) -> ProcessGroup | None:
    """Do what ``ProcessGroup.split_group`` documents; the order of *ranks* is kept."""
    view = _groups.part_of_world(caller, parent)
    part = _lists(caller, "ranks", [ranks])[0]
    _require_apart(caller, "ranks", [part], range(view.core.size))
    name = _groups.next_name_of(tuple(view.core.ranks[rank] for rank in part))
    refuse_option(caller, "opts", opts)
    refuse_device(caller, "device_types", device_types)
    seconds = view.core.timeout if timeout is None else seconds_of(caller, timeout)
    if view.core.rank not in part:
        return None
    return _make(caller, view, name, part, seconds, view.backend, group_name, group_desc)


def shrink(caller: Caller, ranks_to_exclude: Any, group: Any, shrink_flags: int, pg_options: Any) -> ProcessGroup:
    """Do what ``shrink_group`` documents."""
    old = _groups.part_of_world(caller, group)
    if not isinstance(ranks_to_exclude, list):
        raise caller.explain(ArgumentTypeError(f"ranks_to_exclude must be a list, got {ranks_to_exclude!r}"))
    _require_apart(
        caller, "ranks_to_exclude", _lists(caller, "ranks_to_exclude", [ranks_to_exclude]), range(old.core.size)
    )
    remaining = [rank for rank in range(old.core.size) if rank not in ranks_to_exclude]
    if not remaining:
        raise caller.explain(ArgumentError(f"ranks_to_exclude must leave a rank, got {ranks_to_exclude}"), old.core)
    members = tuple(old.core.ranks[rank] for rank in remaining)
    name = _groups.next_name_of(members)
    if shrink_flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise caller.explain(
            ArgumentError(f"shrink_flags must be SHRINK_DEFAULT or SHRINK_ABORT, got {shrink_flags!r}")
        )
    refuse_option(caller, "pg_options", pg_options)
    if old.core.rank not in remaining:
        raise caller.explain(
            StateError(f"rank {old.core.rank} is excluded and must not call this: the ranks that remain do"), old.core
        )
    is_world = old is _groups.world_view()
    core = groups.new_group(caller, members, name=name, backend=old.backend, timeout=old.core.timeout)
    if is_world:
        for view in _groups.views()[1:]:
            _membership.destroy(caller, view)
        return _groups.replace_world(core, old)
    _membership.destroy(caller, old)
    return _groups.open_view(core, f"{old.group_name}:shrunk", old.group_desc, old.backend)


def _make(
    caller: Caller,
    parent: ProcessGroup,
    name: str,
    ranks: Sequence[int],
    seconds: float,
    backend: str,
    group_name: str | None,
    group_desc: str | None,
) -> ProcessGroup:
    """Make a group of the group ranks *ranks* of *parent*, which its members alone do, who meet under *name*."""
    members = tuple(parent.core.ranks[rank] for rank in ranks)
    core = groups.new_group(caller, members, name=name, backend=backend, timeout=seconds)
    return _groups.open_view(core, group_name or core.name, group_desc or f"{parent.group_desc}:split", backend)


def _require_part_of_backend(caller: Caller, name: str, whole: str) -> None:
    parents = BackendConfig(whole).get_device_backend_map()
    for device, backend in BackendConfig(name).get_device_backend_map().items():
        if parents.get(device) != backend:
            raise caller.explain(
                ArgumentError(f"backend must be a part of the parent group's, {whole!r}, got {name!r} for {device}")
            )


def _lists(caller: Caller, name: str, lists: Any) -> list[list[int]]:
    """Return *lists*, which must be a list, not empty, of lists of integers, not empty."""
    if lists is None or (isinstance(lists, Sized) and len(lists) == 0):
        raise caller.explain(ArgumentError(f"{name} must not be empty, got {lists!r}"))
    try:
        parts = [[index(rank) for rank in part] for part in lists]
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"{name} must be lists of integers, got {lists!r}")) from None
    if not all(parts):
        raise caller.explain(ArgumentError(f"{name} must name at least one rank for each group, got {lists!r}"))
    return parts


def _require_apart(caller: Caller, name: str, parts: Sequence[Sequence[int]], allowed: Sequence[int]) -> None:
    """Raise unless every rank is one of *allowed* and occurs once."""
    ranks = [rank for part in parts for rank in part]
    try:
        for rank in ranks:
            if rank not in allowed:
                raise ArgumentError(f"{name} must be ranks of {list(allowed)}, got {rank}")
            if ranks.count(rank) > 1:
                raise ArgumentError(f"{name} must name each rank once, got {rank} {ranks.count(rank)} times")
    except ShimError as error:
        raise caller.explain(error) from None


def _integer(caller: Caller, name: str, number: Any) -> int:
    try:
        return index(number)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"{name} must be an integer, got {number!r}")) from None
