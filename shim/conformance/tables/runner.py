"""Carry out the cells of the tables on rank processes, and gather what every rank saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shim.conformance.kinds import Selection
from shim.conformance.rank_runner import Call, Seen, run_in_ranks
from shim.conformance.tables.cells import Cell
from shim.conformance.tables.elements import kind_for

SIZE = 2  # ranks of every cell, as when the frameworks' own cells were recorded


@dataclass(frozen=True)
class CellResult:
    """How one cell went: with tensors of ``kind``, ``checks`` calls on each rank, ``errors`` by rank."""

    cell: Cell
    kind: str
    checks: int
    seconds: float
    errors: tuple[tuple[int, str], ...]

    @property
    def passed(self) -> bool:
        return not self.errors


@dataclass
class TablesRun:
    """Everything that one run found; ``versions`` is by kind of tensor."""

    cells: tuple[Cell, ...]
    selection: Selection
    results: list[CellResult] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def not_run(self) -> int:
        """How many cells that have a call have no result."""
        return sum(cell.call is not None for cell in self.cells) - len(self.results)

    @property
    def passed(self) -> bool:
        """Tell whether something ran, all that ran passed, and nothing was left out but by narrowing the selection."""
        complete = not self.not_run or self.selection.narrowed
        ran = bool(self.results) and not self.selection.missing
        return ran and complete and all(result.passed for result in self.results)


def planned(cells: Sequence[Cell], selection: Selection) -> dict[str, list[Cell]]:
    """Return what to run: by the kind of tensor that each cell takes, without those that no kind at hand can carry."""
    plan: dict[str, list[Cell]] = {kind: [] for kind in selection.present}
    for cell in cells:
        if cell.call is not None:
            kind = kind_for(cell.column.kind, cell.dtypes, selection.present)
            if kind is not None:
                plan[kind].append(cell)
    return {kind: of_kind for kind, of_kind in plan.items() if of_kind}


def run_cells(
    cells: Sequence[Cell], selection: Selection, on_result: Callable[[CellResult], None] = lambda result: None
) -> TablesRun:
    """Run every cell for which there are tensors; tell *on_result* of each as it ends."""
    run = TablesRun(tuple(cells), selection)
    begin = time.perf_counter()

    def on_seen(call: Call, seen: Seen) -> bool:
        run.results.append(_result(call.what, call.kind, seen, run.versions))
        on_result(run.results[-1])
        return run.results[-1].passed

    plan = planned(cells, selection)
    calls = [Call(cell, kind, SIZE, (cell, kind)) for kind, of_kind in plan.items() for cell in of_kind]
    run_in_ranks("shim.conformance.tables.ranks:see_cell", calls, on_seen)
    run.seconds = time.perf_counter() - begin
    return run


def _result(cell: Cell, kind: str, seen: Seen, versions: dict[str, str]) -> CellResult:
    versions.update((kind, sight.version) for sight in seen.values.values())
    errors = {**seen.errors, **{rank: "\n".join(sight.differences) for rank, sight in seen.values.items()}}
    told = tuple((rank, errors[rank]) for rank in sorted(errors) if errors[rank])
    return CellResult(cell, kind, min((sight.checks for sight in seen.values.values()), default=0), seen.seconds, told)
