"""What torch's functional collectives take for a group: a group, its name, its ranks, or a mesh of devices."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from shim.core import groups
from shim.core.callers import Caller, warn_user
from shim.errors import ArgumentError, RankError, UnsupportedError
from shim.frontends.torch._compiled_graphs import once_a_graph
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError, DefaultGroupMissingError
from shim.frontends.torch._functional.errors import GroupNameError
from shim.frontends.torch._groups import membership, registry
from shim.frontends.torch._groups.process_group import ProcessGroup


def core_group(caller: Caller, group: Any, tag: str = "") -> groups.ProcessGroup:
    """Return core's group for *group*, which must be one of the kinds that torch documents; None is not.

    *tag* chooses among groups of the same ranks, where *group* is a list of them.
    """
    if isinstance(group, list):
        return _of_ranks(caller, group, tag)
    if tag != "":
        raise caller.explain(
            UnsupportedError(
                f"tag must be '' where {{group}} is no list of ranks: the torch frontend finds it without, got {tag!r}"
            )
        )
    if isinstance(group, ProcessGroup):
        return group.core
    if isinstance(group, str):
        return _named(caller, group)
    if hasattr(group, "group_name"):  # what torch's tracer shows for a group that is torch's as well
        return _named(caller, group.group_name)
    if _is_mesh(group):
        return _of_mesh(caller, group, None)
    if isinstance(group, tuple) and len(group) == 2 and _is_mesh(group[0]) and isinstance(group[1], int):
        return _of_mesh(caller, *group)
    raise caller.explain(
        ArgumentTypeError(
            f"{{group}} must be a ProcessGroup, its name, a DeviceMesh or (DeviceMesh, dimension), got {group!r}"
        )
    )


def core_group_or_world(caller: Caller, group: Any, tag: str = "") -> groups.ProcessGroup:
    """Return core's group for *group*, which is the world when it is None or empty."""
    if group:
        return core_group(caller, group, tag)
    world = registry.world_view()
    if world is None:
        raise caller.explain(
            DefaultGroupMissingError("the default process group is not initialised\nCall init_process_group first.")
        )
    return core_group(caller, world, tag)


def _named(caller: Caller, name: str) -> groups.ProcessGroup:
    found = registry.named(name)
    if found is None:
        raise caller.explain(GroupNameError(f"{{group}} must be the name of a process group, got {name!r}"))
    return found.core


def _of_ranks(caller: Caller, ranks: list[Any], tag: str) -> groups.ProcessGroup:
    """Return the group that has the world's *ranks*, or of several lists the one that this rank is in."""
    warn_user(
        "torch deprecates a list of ranks for a process group; pass the group or its name", FutureWarning, "torch"
    )
    if ranks and all(isinstance(row, list) for row in ranks):
        if len({len(row) for row in ranks}) != 1:
            raise caller.explain(ArgumentError(f"{{group}} must have lists of equal length, got {ranks}"))
        ranks = _row_of_mine(caller, ranks)
    found = registry.find(tag, [_rank(caller, rank) for rank in ranks])
    if found is None:
        tagged = f" and tag {tag!r}" if tag else ""
        raise caller.explain(
            ArgumentError(f"{{group}}: no process group has ranks {ranks}{tagged}\nMake it with new_group first.")
        )
    return found.core


def _rank(caller: Caller, rank: Any) -> int:
    try:
        return index(rank)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"{{group}} must hold ranks, got {rank!r}")) from None


def _row_of_mine(caller: Caller, rows: Sequence[Sequence[int]]) -> list[int]:
    mine = groups.world(caller).rank
    for row in rows:
        if mine in row:
            return list(row)
    raise caller.explain(RankError(f"{{group}} must have this process's rank {mine} in it, got {rows}"))


def _is_mesh(group: Any) -> bool:
    return type(group).__name__ == "DeviceMesh" and type(group).__module__.startswith("torch.")


def _of_mesh(caller: Caller, mesh: Any, dimension: int | None) -> groups.ProcessGroup:
    """Return the group along *dimension* of torch's *mesh*; it is made here when there is none with its ranks."""
    ranks = mesh.mesh
    if dimension is None and ranks.ndim != 1:
        raise caller.explain(
            ArgumentAssertionError(f"{{group}} must be a 1-D mesh, or (mesh, dimension), got one of {ranks.ndim}-D")
        )
    dimension = dimension or 0
    if not -ranks.ndim <= dimension < ranks.ndim:
        raise caller.explain(ArgumentError(f"{{group}} must name a dimension of {mesh}, got {dimension}"))
    along = ranks.transpose(dimension, -1).reshape(-1, ranks.shape[dimension])
    row = _row_of_mine(caller, along.tolist())
    found = registry.find("", row)
    if found is None:  # its members make it alone, sorted as it would be found
        found = membership.make_group(caller, row, None, None, None, True, "mesh", None, True)
    return found.core


once_a_graph(_named)
once_a_graph(_of_ranks)
once_a_graph(_of_mesh)
