"""What a cell of the tables is: an operation or a dtype, in one framework's API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from shim.conformance.tables.checks import Check
from shim.conformance.tables.elements import Tensors

ABSENT = "n/a"  # the framework has no such function
MOVES_ALONE = "moves; arithmetic refused"  # float8, of which no framework defines a sum
_YES = "yes"
Call = Callable[[Tensors, int, int], Iterator[Check]]


@dataclass(frozen=True)
class Table:
    """A table: what it tells, and its rows in order."""

    name: str
    title: str
    rows: tuple[str, ...]


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


OPERATIONS = Table(
    "operations",
    "What runs on a CPU",
    (
        "all_reduce",
        "broadcast",
        "all_gather (list)",
        "all_gather_into_tensor",
        "reduce",
        "reduce_scatter, list and tensor",
        "all_to_all (list)",
        "all_to_all_single",
        "gather and scatter",
        "send and recv",
        "batch_isend_irecv",
        "barrier",
        "all_gather_object",
        "other object collectives",
        "init_process_group",
        "stream, calc stream",
    ),
)
DTYPES = Table(
    "dtypes",
    "Dtypes on a CPU",
    (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32, int64",
        "uint16, uint32, uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn, float8_e5m2",
    ),
)
TABLES = (OPERATIONS, DTYPES)


def operation_cells(column: Column, calls: Mapping[str, tuple[str, Call | None]]) -> tuple[Cell, ...]:
    """Return *column*'s cells of the table of operations, from what is recorded of the framework, and our call, by row."""
    return tuple(Cell(OPERATIONS.name, row, column, real, call) for row, (real, call) in calls.items())


def dtype_cells(
    column: Column, call: Callable[..., Iterator[Check]], real: Mapping[str, str], of_float8: str = _YES
) -> tuple[Cell, ...]:
    """Return *column*'s cells of the table of dtypes, from what is recorded of the framework, by row.

    *call* is a Cell's with one more argument, a dtype. *of_float8* is what the cell of float8 says.
    """
    cells = []
    for row, told in real.items():
        dtypes = tuple(row.split(", "))
        says = of_float8 if row.startswith("float8") else _YES
        cells.append(Cell(DTYPES.name, row, column, told, partial(_each, call, dtypes), says, dtypes))
    return tuple(cells)


def _each(
    call: Callable[..., Iterator[Check]], dtypes: tuple[str, ...], tensors: Tensors, rank: int, size: int
) -> Iterator[Check]:
    for dtype in dtypes:
        yield from call(tensors, rank, size, dtype)
