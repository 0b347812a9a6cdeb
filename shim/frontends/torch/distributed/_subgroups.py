"""Dividing groups, at torch's signatures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.frontends.torch._calls.options import refuse_option, seconds_of
from shim.frontends.torch._errors import torch_function
from shim.frontends.torch._groups import registry
from shim.frontends.torch._groups.group_arguments import part_of_world
from shim.frontends.torch._groups.parts import (
    SHRINK_DEFAULT,
    check_flags,
    equal_parts,
    listed_parts,
    make_parts,
    own_part,
    part_of_backend,
    remaining_ranks,
    replace_by,
)
from shim.frontends.torch._groups.process_group import ProcessGroup, members_of
from shim.frontends.torch._groups.rank_lists import rank_lists, require_apart

_NEW_SUBGROUPS = torch_function("new_subgroups")
_BY_ENUMERATION = torch_function("new_subgroups_by_enumeration")
_SPLIT = torch_function("split_group", group="parent_pg")
_SHRINK = torch_function("shrink_group")


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide *group* (None: the world) into groups of *group_size* ranks; return the caller's own, and all of them.

    Every rank of *group* calls it. Without *group_size* torch takes the number of accelerators: it must be given.
    *timeout* (a timedelta), *backend*, *pg_options* and *group_desc* are as in new_group.
    Raises: ValueError where *group_size* does not divide the ranks, and outside *group*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.new_subgroups
    """
    whole = part_of_world(_NEW_SUBGROUPS, group)
    parts = equal_parts(_NEW_SUBGROUPS, whole, group_size)
    by_members = not registry.is_world(whole)
    return make_parts(_NEW_SUBGROUPS, parts, timeout, backend, pg_options, group_desc, by_members)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make a group of each list of world ranks in *ranks_per_subgroup_list*; return the caller's own, and all of them.

    Every rank of the world calls it; the caller's own is None where it is in no list.
    *timeout* (a timedelta), *backend*, *pg_options* and *group_desc* are as in new_group.
    Raises: ValueError for a rank that occurs twice or is not in the world, before any group is made.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.new_subgroups_by_enumeration
    """
    parts = listed_parts(_BY_ENUMERATION, ranks_per_subgroup_list)
    return make_parts(_BY_ENUMERATION, parts, timeout, backend, pg_options, group_desc, False)


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Make a group of each list of *parent_pg*'s (None: the world's) group ranks in *split_ranks*; return the caller's own.

    None is returned on ranks in no list. A *backend* must be a part of the parent's; *timeout*, a timedelta, is by default the parent's;
    *pg_options* and *group_desc* are as in new_group.
    Raises: ValueError for an empty list, and for ranks that occur twice or are not in *parent_pg*.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.split_group
    """
    parent = part_of_world(_SPLIT, parent_pg)
    division = groups.next_name_of(parent.core.ranks)  # counted even when it is refused: the other ranks count it
    parts = rank_lists(_SPLIT, "split_ranks", split_ranks)
    require_apart(_SPLIT, "split_ranks", parts, range(parent.core.size))
    name = part_of_backend(_SPLIT, parent.backend, backend)
    refuse_option(_SPLIT, "pg_options", pg_options)
    seconds = parent.core.timeout if timeout is None else seconds_of(_SPLIT, timeout)
    return own_part(_SPLIT, parent, division, parts, seconds, name, group_desc)


def shrink_group(
    ranks_to_exclude: list[int],
    group: ProcessGroup | None = None,
    shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> ProcessGroup:
    """Replace *group* (None: the world, with all groups) by one without its group ranks *ranks_to_exclude*, who do not call.

    What still runs in *group* is given up, whatever *shrink_flags* say; *pg_options* raises UnsupportedError.
    Raises: ValueError for ranks that are not in it, occur twice, or are all it has; RuntimeError on an excluded rank.
    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.distributed_c10d.shrink_group
    """
    old = part_of_world(_SHRINK, group)
    remaining = remaining_ranks(_SHRINK, old.core, ranks_to_exclude)
    name = groups.next_name_of(members_of(old, remaining))
    check_flags(_SHRINK, shrink_flags)
    refuse_option(_SHRINK, "pg_options", pg_options)
    return replace_by(_SHRINK, old, remaining, name)
