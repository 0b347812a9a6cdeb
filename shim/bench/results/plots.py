"""A record as pictures: time against size on logarithmic axes, a line per library and the floor below them; PNG and SVG."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shim.bench.cases import WITHOUT_SIZE, Case, size_text
from shim.bench.floors import ONE_COPY, TWO_COPIES
from shim.bench.results.comparison import Comparison, series
from shim.bench.results.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LINES = 8


@dataclass(frozen=True)
class _Line:
    """How a library is drawn in every picture. At each size the fastest of its *settings* counts."""

    settings: tuple[str, ...]
    color: str
    marker: str


_LINES = {  # the first ones that were measured are drawn
    "torch": _Line(("torch",), "tab:blue", "o"),
    "torch-shared": _Line(("torch-shared",), "tab:cyan", "D"),
    "gloo": _Line(("gloo", "gloo-tuned"), "tab:orange", "s"),
    "openmpi": _Line(("openmpi", "openmpi-tuned"), "tab:green", "^"),
    "mpich": _Line(("mpich", "mpich-tuned"), "tab:red", "v"),
    ONE_COPY: _Line((ONE_COPY,), "0.45", "x"),
    TWO_COPIES: _Line((TWO_COPIES,), "0.45", "+"),
    "engine": _Line(("engine",), "navy", "*"),
    "paddle_3": _Line(("paddle_3",), "tab:purple", "P"),
    "mindspore": _Line(("mindspore",), "tab:brown", "p"),
    "torch-numpy": _Line(("torch-numpy",), "tab:pink", "h"),
    "paddle-gloo": _Line(("paddle-gloo",), "tab:olive", "d"),
}
_STYLES: dict[str, dict[str, Any]] = {
    "ours": {"linewidth": 1.8},
    "peer": {"linewidth": 1.2, "linestyle": "--"},
    "floor": {"linewidth": 1.2, "linestyle": ":"},
}
_SIZE = (9.0, 5.5)  # inches
_DOTS = 120  # an inch


def missing_for_plots() -> str | None:
    """Return what has to be installed before ``plot`` can draw, or None."""
    if importlib.util.find_spec("matplotlib") is None:
        return "plots need matplotlib, which is not installed: python3 -m pip install 'shim-collectives[bench]'"
    return None


def plot(record: Record, folder: Path) -> list[Path]:
    """Draw a picture per collective, number of ranks and dtype into *folder*, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(record)
    return [
        file
        for (collective, ranks, dtype), cases in series(record).items()
        if collective not in WITHOUT_SIZE
        for file in _save(figure_of(comparison, cases), folder / f"{collective}-{ranks}-ranks-{dtype}")
    ]


def figure_of(comparison: Comparison, cases: list[Case]) -> Figure:
    """Return the picture of *cases*, which are of one collective, number of ranks and dtype."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # it may be absent

    figure = Figure(figsize=_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    roles = {one.name: one.role for one in comparison.record.contenders}
    curves = {name: points for name, line in _LINES.items() if (points := _points(comparison, cases, line))}
    drawn = list(curves)[:_MOST_LINES]
    for name in drawn:
        line, (sizes, times) = _LINES[name], zip(*curves[name], strict=True)
        style = _STYLES[roles[next(one for one in line.settings if one in roles)]]
        axes.plot(sizes, times, label=name, color=line.color, marker=line.marker, markersize=5, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([case.bytes for case in cases], [size_text(case.bytes) for case in cases], rotation=45)
    axes.set_xlabel("bytes per rank")
    axes.set_ylabel("microseconds of a call")
    axes.set_title(f"{cases[0].collective}, {cases[0].ranks} ranks, {cases[0].dtype}")
    axes.grid(visible=True, which="major", alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.supxlabel(
        _caption(comparison.record, list(curves)[_MOST_LINES:]), fontsize=7, color="0.3", x=0.01, ha="left"
    )
    return figure


def _save(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    for file in files:
        figure.savefig(file, dpi=_DOTS)
    return files


def _points(comparison: Comparison, cases: list[Case], line: _Line) -> list[tuple[int, float]]:
    times = [(case.bytes, [_time(comparison, case, name) for name in line.settings]) for case in cases]
    return [(size, min(found)) for size, all_of in times if (found := [time for time in all_of if time is not None])]


def _time(comparison: Comparison, case: Case, name: str) -> float | None:
    return comparison.floor(case, name) if name in (ONE_COPY, TWO_COPIES) else comparison.median(case, name)


def _caption(record: Record, left_out: list[str]) -> str:
    lines = [
        "Median time of a call on its slowest rank; lower is better. Both axes are logarithmic.",
        "Solid: shim. Dashed: other libraries, each with its fastest settings. Dotted: the least that copying takes.",
        *([f"Not drawn, but in the tables: {', '.join(left_out)}."] if left_out else []),
        _machine(record),
    ]
    return "\n".join(lines)


def _machine(record: Record) -> str:
    machine = record.machine
    return f"{machine['processor']}, {machine['processors_usable']} processors, kernel {machine['kernel']}"
