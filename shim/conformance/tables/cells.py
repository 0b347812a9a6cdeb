"""What a cell of the tables is: an operation or a dtype, in one framework's API; and what is recorded of the frameworks themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from shim.conformance.kinds import Selection, TensorKind, kind_for
from shim.conformance.runner import Failure, Result, Run, run_in_ranks
from shim.conformance.tables.checks import Check, assert_as_expected

ABSENT = "n/a"  # the framework has no such function
SIZE = 2  # ranks of every cell, as when the frameworks' own cells were recorded
_YES = "yes"
Call = Callable[[TensorKind, int, int], Iterator[Check]]

# What the frameworks themselves do on a CPU, by API, in the order of the tables' columns.
_APIS = ("torch", "paddle", "mint", "comm_func", "primitives")
_UNREGISTERED, _NOT_IMPLEMENTED, _UNSUPPORTED = "kernel unregistered", "not implemented", "unsupported"
_OPERATIONS = {
    "all_reduce": (_YES, _YES, _YES, "no kernel", "sum only"),
    "broadcast": (_YES, _YES, _YES, "no: group name", "world group only"),
    "all_gather (list)": (_YES, _YES, _YES, ABSENT, ABSENT),
    "all_gather_into_tensor": (
        *("concatenated only", "yes, by all_gather", _UNREGISTERED),
        *(_UNREGISTERED, "yes; 0-d: SIGSEGV"),
    ),
    "reduce": (_YES, _YES, _UNREGISTERED, "no", _UNSUPPORTED),
    "reduce_scatter, list and tensor": (_YES, _NOT_IMPLEMENTED, _UNREGISTERED, _UNREGISTERED, _UNSUPPORTED),
    "all_to_all (list)": ("equal shapes only", _NOT_IMPLEMENTED, _UNREGISTERED, _UNREGISTERED, _UNSUPPORTED),
    "all_to_all_single": (_YES, "no", _UNREGISTERED, _UNREGISTERED, _UNSUPPORTED),
    "gather and scatter": (_YES, _YES, _YES, "no", _UNSUPPORTED),
    "send and recv": (_YES, _YES, "recv only", "not tried", _UNSUPPORTED),
    "batch_isend_irecv": (_YES, "hangs if both send first", "not tried", "not tried", _UNSUPPORTED),
    "barrier": (_YES, _YES, _YES, _UNSUPPORTED, _UNSUPPORTED),
    "all_gather_object": (_YES, _YES, _YES, ABSENT, ABSENT),
    "other object collectives": (_YES, _YES, "no", ABSENT, ABSENT),
    "init_process_group": (_YES, _YES, "never", _YES, ABSENT),
    "stream, calc stream": (ABSENT, _NOT_IMPLEMENTED, ABSENT, ABSENT, ABSENT),
}
_OF_DTYPES = ("torch", "paddle", "mint.all_reduce", "mint.all_gather", "AllReduce", "AllGather", "Broadcast")
_REFUSED, _ENDS, _TYPE = "RuntimeError", "process ends", "TypeError"
_DTYPES = {
    "bool": (_YES, _YES, _REFUSED, _REFUSED, _TYPE, _TYPE, _TYPE),
    "uint8": (_YES, _YES, _REFUSED, _YES, _TYPE, _TYPE, _TYPE),
    "int8": (_YES, _YES, _YES, _YES, _TYPE, _TYPE, _TYPE),
    "int16": (_REFUSED, _ENDS, _YES, _REFUSED, _TYPE, _YES, _YES),
    "int32, int64": (_YES, _YES, _YES, _YES, _TYPE, _YES, _YES),
    "uint16, uint32, uint64": (_REFUSED, "no such dtype", _REFUSED, _YES, _TYPE, _TYPE, _TYPE),
    "float16": (_YES, "sums are inf", _YES, _YES, _YES, _YES, _YES),
    "bfloat16": (_YES, _YES, _YES, _YES, _TYPE, _TYPE, _TYPE),
    "float32": (_YES, _YES, _YES, _YES, _YES, _YES, _YES),
    "float64": (_YES, _YES, _REFUSED, _YES, _TYPE, _YES, _YES),
    "complex64": ("yes; gather: RuntimeError", _ENDS, _REFUSED, _REFUSED, _TYPE, _TYPE, _TYPE),
    "complex128": (_YES, _ENDS, _REFUSED, _TYPE, _TYPE, _TYPE, _TYPE),
    "float8_e4m3fn, float8_e5m2": (_REFUSED, _ENDS, *["not tried"] * 5),
}


@dataclass(frozen=True)
class Table:
    """A table: what it tells, and its rows in order."""

    name: str
    title: str
    rows: tuple[str, ...]


OPERATIONS = Table("operations", "What runs on a CPU", tuple(_OPERATIONS))
DTYPES = Table("dtypes", "Dtypes on a CPU", tuple(_DTYPES))
TABLES = (OPERATIONS, DTYPES)


@dataclass(frozen=True)
class Column:
    """One API. ``enter`` is its own way into the world; ``kind`` the tensors that its cells run with where they can.

    ``real`` says which framework's cells are recorded beside ours.
    """

    name: str
    real: str
    kind: str
    enter: Callable[[], object]


@dataclass(frozen=True)
class Sight:
    """What one rank saw of a cell: how many calls it checked, and what was wrong with which."""

    checks: int
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """What one API does in one row of a table.

    ``call(tensors, rank, size)`` runs on every rank, in the world that ``column.enter`` entered, and yields what it sees, one
    Check for every call; it is None where the framework has no such function. ``dtypes`` are those that it needs. ``says`` is
    what a cell that passes says. ``real`` is what the framework itself does on a CPU, as it was recorded there.
    """

    table: str
    row: str
    column: Column
    real: str
    call: Call | None
    says: str = _YES
    dtypes: tuple[str, ...] = ("float32",)

    @property
    def name(self) -> str:
        return f"{self.table}, {self.row}, {self.column.name}"

    @property
    def place(self) -> str:
        return self.name

    @property
    def ranks(self) -> int:
        return SIZE

    def see(self, kind: TensorKind, rank: int, size: int) -> Sight:
        """Enter the world as the column does and make all calls, also after one that gave something wrong, because the other ranks make them too."""
        if self.call is None:
            raise ValueError(f"{self.name} has no call")
        checks, differences = 0, []
        self.column.enter()
        for check in self.call(kind, rank, size):
            checks += 1
            try:
                assert_as_expected(check)
            except AssertionError as difference:
                differences.append(str(difference))
        if not checks:
            raise AssertionError(f"{self.name} checked nothing on this rank")
        return Sight(checks, tuple(differences))

    def judge(self, seen: Mapping[int, Sight]) -> list[Failure]:
        """Return a failure for each rank that has seen something wrong."""
        told = {rank: "\n".join(sight.differences) for rank, sight in sorted(seen.items())}
        return [Failure(rank, "call", "", "", text) for rank, text in told.items() if text]


def operation_cells(column: Column, calls: Mapping[str, Call]) -> tuple[Cell, ...]:
    """Return *column*'s cells of the table of operations, from our calls by row; those of the other rows are absent."""
    at = _APIS.index(column.name)
    return tuple(
        Cell(OPERATIONS.name, row, column, recorded[at], calls.get(row)) for row, recorded in _OPERATIONS.items()
    )


def dtype_cells(column: Column, call: Callable[..., Iterator[Check]], of_float8: str = _YES) -> tuple[Cell, ...]:
    """Return *column*'s cells of the table of dtypes. *call* is a Cell's with one more argument, a dtype.

    *of_float8* is what the cell of float8 says.
    """
    at, cells = _OF_DTYPES.index(column.name), []
    for row, recorded in _DTYPES.items():
        dtypes = tuple(row.split(", "))
        says = of_float8 if row.startswith("float8") else _YES
        cells.append(Cell(DTYPES.name, row, column, recorded[at], partial(_each, call, dtypes), says, dtypes))
    return tuple(cells)


def _each(
    call: Callable[..., Iterator[Check]], dtypes: tuple[str, ...], tensors: TensorKind, rank: int, size: int
) -> Iterator[Check]:
    for dtype in dtypes:
        yield from call(tensors, rank, size, dtype)


def planned(cells: Sequence[Cell], selection: Selection) -> list[tuple[Cell, str]]:
    """Return the cells to run, kind by kind, each with the kind of tensor that it takes, without those that no kind at hand can carry."""
    chosen = [
        (cell, kind_for(cell.column.kind, cell.dtypes, selection.present)) for cell in cells if cell.call is not None
    ]
    return [(cell, kind) for kind in selection.present for cell, its_kind in chosen if its_kind == kind]


def run_of(cells: Sequence[Cell], selection: Selection) -> Run[Cell]:
    """Return a run of *cells* that has not begun."""
    with_a_call = sum(cell.call is not None for cell in cells)
    return Run(tuple(cells), selection, not_run=with_a_call - len(planned(cells, selection)))


def run_cells(
    cells: Sequence[Cell], selection: Selection, on_result: Callable[[Result[Cell]], Any] = lambda result: None
) -> Run[Cell]:
    """Run every cell for which there are tensors; tell *on_result* of each as it ends."""
    return run_in_ranks(run_of(cells, selection), planned(cells, selection), on_result)
