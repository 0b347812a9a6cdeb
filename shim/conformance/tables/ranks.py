"""What happens in a rank process: carry out one cell and say how many calls were checked."""

from __future__ import annotations

from dataclasses import dataclass

from shim.conformance.kinds import kind_named
from shim.conformance.rank_runner import leave_world
from shim.conformance.tables.cells import Cell
from shim.conformance.tables.checks import assert_as_expected
from shim.conformance.tables.elements import Tensors
from shim.core.job import rendezvous


@dataclass(frozen=True)
class Seen:
    """What one rank saw: how many calls it checked, what was wrong with which, and the version of its tensors' framework."""

    checks: int
    differences: tuple[str, ...]
    version: str


def see_cell(cell: Cell, kind: str) -> Seen:
    """Enter the world as *cell*'s column does, carry it out with tensors of *kind*, and leave the world again.

    All its calls are made, also after one that gave something wrong, because the other ranks make them too.
    """
    if cell.call is None:
        raise ValueError(f"{cell.name} has no call")
    tensors = Tensors(kind_named(kind))
    place = rendezvous.locate()
    checks, differences = 0, []
    try:
        cell.column.enter()
        for check in cell.call(tensors, place.rank, place.size):
            checks += 1
            try:
                assert_as_expected(check)
            except AssertionError as difference:
                differences.append(str(difference))
    finally:
        leave_world()
    if not checks:
        raise AssertionError(f"{cell.name} checked nothing on this rank")
    return Seen(checks, tuple(differences), tensors.kind.version)
