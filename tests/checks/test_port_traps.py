"""The table of traps in docs/porting.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import port_traps

ROOT = Path(__file__).parents[2]
SWAPPED = next(trap for trap in port_traps.TRAPS if trap.code == "dist.alltoall(x, out)")


def test_each_row_shows_code_or_an_entry() -> None:
    table = port_traps.render("before\n### Traps\nold\n### Entries\nafter\n")
    assert table.startswith("before\n### Traps\n")
    assert table.endswith("\n\n### Entries\nafter\n")
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith(("| torch", "| Paddle", "| MindSpore"))]
    assert len(rows) == len(port_traps.TRAPS) > 20
    assert all(len(row) == 4 and "`" in row[3] for row in rows)


def test_code_and_entries_are_those_of_the_port() -> None:
    assert port_traps.result(SWAPPED) == "in Paddle 3: `dist.alltoall(in_tensor_list=x, out_tensor_list=out)`"
    assert port_traps.result(SWAPPED._replace(code="sender = f(x)\ndist.alltoall(*x)")) == "left: `unpacked-arguments`"


def test_a_trap_about_which_the_port_does_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the port does nothing about 'dist\.barrier\(\)': alltoall"):
        port_traps.result(SWAPPED._replace(code="dist.barrier()", trap="alltoall"))


def test_another_table_is_found(tmp_path: Path) -> None:
    page = tmp_path / port_traps.PAGE
    page.parent.mkdir()
    page.write_text((ROOT / port_traps.PAGE).read_text())
    assert port_traps.check(tmp_path) == []
    page.write_text(page.read_text().replace("in_tensor_list=x", "in_tensor_list=y"))
    assert port_traps.check(tmp_path) == [
        "docs/porting.md:1: the traps are not what the port does: run python -m checks.port_traps"
    ]
