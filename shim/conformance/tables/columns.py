"""All cells of the tables."""

from __future__ import annotations

from shim.conformance.tables import comm_func_calls, mint_calls, paddle_calls, primitive_calls, torch_calls
from shim.conformance.tables.cells import Cell

CELLS: tuple[Cell, ...] = (
    *torch_calls.CELLS,
    *paddle_calls.CELLS,
    *mint_calls.CELLS,
    *comm_func_calls.CELLS,
    *primitive_calls.CELLS,
)
