"""Which form of a table a terminal has room for."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from shim.conformance.progress import first_that_fits, fits


def a_table(head):
    table = Table(head)
    table.add_row("x")
    return table


WIDE, NARROW = a_table("eleven wide"), a_table("eleven\nwide")


@pytest.mark.parametrize(("width", "expected"), [(15, WIDE), (14, NARROW), (10, NARROW), (9, NARROW)])
def test_the_first_form_that_has_room_is_taken_else_the_last(width, expected):
    assert first_that_fits(Console(width=width), WIDE, NARROW) is expected


@pytest.mark.parametrize("width", [14, 15])
def test_what_fits_is_printed_without_a_line_more(width):
    console = Console(file=io.StringIO(), width=width)
    console.print(WIDE)
    assert fits(WIDE, console) == ("eleven wide" in console.file.getvalue())
