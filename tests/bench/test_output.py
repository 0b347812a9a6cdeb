"""Tables and pictures of a record."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fakes import record
from rich.console import Console

from shim.bench import run as measuring
from shim.bench.cases import COLLECTIVES, Case
from shim.bench.floors import TWO_COPIES
from shim.bench.plan import CONTENDERS
from shim.bench.results import plots
from shim.bench.results.comparison import Comparison
from shim.bench.results.plots import plot
from shim.bench.results.record import Overlap, Record, Result
from shim.bench.results.table import markdown_of, print_record, time_text

SMALL, LARGE = (Case("all_reduce", 2, "float32", size) for size in (8, 1 << 20))


def example() -> Record:
    times = {
        (SMALL, "torch"): 2.0, (SMALL, "gloo"): 200.0, (SMALL, "openmpi"): 1.0, (SMALL, TWO_COPIES): 0.5,
        (LARGE, "torch"): 50.0, (LARGE, "gloo"): 1000.0, (LARGE, TWO_COPIES): 40.0,
    }  # fmt: skip
    failed = Result(LARGE, "openmpi", "failed", "rank 1 has died")
    return record(times, [failed], [Overlap(LARGE, "torch", 512, 100.0, 110.0, 132.0, 9)])


def printed(shown: Record, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
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


def test_a_table_has_as_many_parts_as_the_width_asks_for_and_each_cell_whole() -> None:
    shown = example()
    wide, narrow = printed(shown), printed(shown, 60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert (wide.count("┃ size"), narrow.count("┃ size")) == (1, 2)
    for cell in ("(1.80-2.20)", "(900-1100)", "floor-two-copies", "20.00 x peer"):
        assert wide.count(cell) == narrow.count(cell) > 0, cell


@pytest.mark.parametrize(("load", "is_told"), [(0.4, False), (0.6, True), (5.0, True)])
def test_a_busy_machine_is_told(load: float, is_told: bool) -> None:
    shown = example()
    shown.machine["load_before"] = [load, 0.0, 0.0]
    assert (f"The machine is busy: load {load} before the run, on 2 processors" in printed(shown)) == is_told


def test_the_page_has_a_row_for_each_size_with_what_ours_is_compared_with() -> None:
    lines = markdown_of(example()).splitlines()
    assert "### all_reduce, 2 ranks, float32" in lines
    assert "| size | torch | gloo | openmpi | floor-two-copies | torch x peer | torch x floor |" in lines
    assert "| 8 B | 2.00 | 200 | 1.00 | 0.55 | 0.50 | 3.64 |" in lines
    assert "| 1 MB | 50.0 | 1000 | failed | 40.0 | 20.00 | 1.25 |" in lines


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0.123, "0.12"), (12.34, "12.3"), (1234.0, "1234"), (12_340.0, "12,340")]
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


def test_a_picture_has_eight_lines_each_of_the_fastest_settings_of_a_library(tmp_path: Path) -> None:
    times = {(case, name): 9.0 if name == "gloo" else 2.0 for case in (SMALL, LARGE) for name in CONTENDERS}
    figure = plots.figure_of(Comparison(record(times)), [SMALL, LARGE])
    (axes,), (legend,) = figure.axes, figure.legends
    lines = {str(line.get_label()): line for line in axes.lines}
    assert list(lines) == [
        "torch", "torch-shared", "gloo", "openmpi", "mpich", "floor-one-copy", TWO_COPIES, "engine",
    ]  # fmt: skip
    assert [text.get_text() for text in legend.get_texts()] == list(lines)
    assert list(lines["gloo"].get_ydata()) == [2.0, 2.0]
    assert "in the tables: paddle_3, mindspore, torch-numpy, paddle-gloo." in figure.get_supxlabel()
    fewer = plots.figure_of(Comparison(record({(SMALL, "gloo-tuned"): 2.0})), [SMALL])
    (alone,) = fewer.axes[0].lines
    for told in ("get_label", "get_color", "get_marker"):
        assert getattr(alone, told)() == getattr(lines["gloo"], told)()
    assert "in the tables" not in fewer.get_supxlabel()


def test_progress_is_told_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_LINE_SECONDS", 0.0)
    console = Console(file=io.StringIO(), width=100, highlight=False)
    with measuring.ProgressBar(4.0, console) as bar:
        bar.begin("first")
        bar.advance(3.0)
        bar.begin("second")
    told = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "75% measured, 0:00:00 left" in told


@pytest.mark.parametrize("name", ["performance.md", "performance_notebook.md"])
def test_the_pages_name_everyone_who_is_measured_and_everything_that_is(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")
    assert [name for name in CONTENDERS if f"`{name}`" not in page] == []
    assert [name for name in COLLECTIVES if name not in page] == []


def test_the_figures_of_the_page_are_those_of_the_measured_run() -> None:
    docs = Path(__file__).parents[2] / "docs"
    results = (
        (docs / "performance_results.md").read_text(encoding="utf-8").partition("### all_reduce, 2 ranks, float32\n")[2]
    )
    heads, _, *rows = (
        [cell.strip() for cell in row.strip("|").split("|")] for row in results.strip().splitlines()[:15]
    )
    measured = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
    page = (docs / "performance.md").read_text(encoding="utf-8").partition("| bytes per rank | shim |")[2]
    shown = [[cell.strip() for cell in row.strip("|").split("|")] for row in page.splitlines()[2:8]]
    assert len(shown) == 6
    for size, ours, in_shared_memory, gloo, open_mpi in shown:
        of = measured[size]
        assert (ours, in_shared_memory) == (of["torch"], of["torch-shared"])
        assert gloo in (of["gloo"], of["gloo-tuned"])
        assert open_mpi in (of["openmpi"], of["openmpi-tuned"])


def test_a_missing_matplotlib_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
    assert "shim-collectives[bench]" in (plots.missing_for_plots() or "")
