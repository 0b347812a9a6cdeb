"""Tables and pictures of a record."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fakes import record
from rich.console import Console

from shim.bench import plots, progress
from shim.bench.cases import COLLECTIVES, Case
from shim.bench.comparison import Comparison
from shim.bench.contenders import CONTENDERS
from shim.bench.figures import Overlap, Result
from shim.bench.floors import TWO_COPIES
from shim.bench.markdown import markdown_of
from shim.bench.plots import plot
from shim.bench.record import Record
from shim.bench.table import print_record, time_text

SMALL, LARGE = (Case("all_reduce", 2, "float32", size) for size in (8, 1 << 20))


def example() -> Record:
    times = {
        (SMALL, "torch"): 2.0, (SMALL, "gloo"): 200.0, (SMALL, "openmpi"): 1.0, (SMALL, TWO_COPIES): 0.5,
        (LARGE, "torch"): 50.0, (LARGE, "gloo"): 1000.0, (LARGE, TWO_COPIES): 40.0,
    }  # fmt: skip
    failed = Result(LARGE, "openmpi", "failed", "rank 1 has died")
    return record(times, [failed], [Overlap(LARGE, "torch", 512, 100.0, 110.0, 132.0, 9)])


def printed(shown: Record) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_record(shown, console)
    return console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO


def test_the_best_peer_and_the_floor_are_compared_with() -> None:
    comparison = Comparison(example())
    assert comparison.best_peer(SMALL) == (1.0, "openmpi")
    assert comparison.best_peer(LARGE) == (1000.0, "gloo")
    assert comparison.floor(SMALL, TWO_COPIES) == pytest.approx(0.5 + 0.1 / 2)
    assert comparison.median(LARGE, "openmpi") is None


def test_the_table_has_figures_ratios_machine_and_what_failed() -> None:
    text = printed(example())
    for expected in (
        "Made-up 9000", "kernel 6.1", "all_reduce, 2 ranks, float32", "0.50 x peer", "20.00 x peer", "(1.80-2.20)", "1 MB",
        "failed", "openmpi failed all_reduce (2 ranks; float32; 1 case): rank 1 has died", "1.20",
    ):  # fmt: skip
        assert expected in text, expected


def test_the_page_has_a_row_for_each_size_with_what_ours_is_compared_with() -> None:
    lines = markdown_of(example()).splitlines()
    assert "### all_reduce, 2 ranks, float32" in lines
    assert "| size | torch | gloo | openmpi | floor-two-copies | torch x peer | torch x floor |" in lines
    assert "| 8 B | 2.00 | 200 | 1.00 | 0.55 | 0.50 | 3.64 |" in lines
    assert "| 1 MB | 50.0 | 1000 | failed | 40.0 | 20.00 | 1.25 |" in lines


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0.123, "0.12"), (12.34, "12.3"), (1234.0, "1234"), (12_340.0, "12.3 ms")]
)
def test_times_have_the_digits_that_matter(microseconds: float, text: str) -> None:
    assert time_text(microseconds) == text


def test_pictures_are_drawn_as_png_and_svg(tmp_path: Path) -> None:
    files = plot(example(), tmp_path / "new")
    assert [file.name for file in files] == ["all_reduce-2-ranks-float32.png", "all_reduce-2-ranks-float32.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    drawn = files[1].read_text()
    assert "<svg" in drawn
    assert drawn.count("<!-- ") > 4
    for name in ("torch", "gloo", "floor-two-copies", "1 MB"):
        assert f"<!-- {name} -->" in drawn


def test_progress_is_told_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    console = Console(file=io.StringIO(), width=100, highlight=False)
    with progress.ProgressBar(4.0, console) as bar:
        bar.begin("first")
        bar.advance(3.0)
        bar.begin("second")
    told = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "75% measured, 0:00:00 left" in told


def test_the_page_names_everyone_who_is_measured_and_everything_that_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    assert [name for name in CONTENDERS if f"`{name}`" not in page] == []
    assert [name for name in COLLECTIVES if name not in page] == []


def test_a_missing_matplotlib_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
    assert "shim-collectives[bench]" in (plots.missing_for_plots() or "")
