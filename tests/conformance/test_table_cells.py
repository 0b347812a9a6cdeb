"""Every cell of the tables holds on other numbers of ranks than the two of the command."""

from __future__ import annotations

import pytest

from shim.conformance.kinds import kind_for
from shim.conformance.runner import see
from shim.conformance.tables.cells import Cell
from shim.conformance.tables.columns import CELLS

OF_NUMPY = [cell for cell in CELLS if cell.call is not None and kind_for("numpy", cell.dtypes, ["numpy"]) == "numpy"]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the names that torch has renamed are in the tables too
@pytest.mark.ranks(3, 4, 7)
@pytest.mark.parametrize("cell", OF_NUMPY, ids=lambda cell: f"numpy-{cell.name}")
def test_a_cell_on_other_numbers_of_ranks(cell: Cell) -> None:
    assert see(cell, "numpy").seen.differences == ()
