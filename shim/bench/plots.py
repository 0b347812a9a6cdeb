"""A record as pictures: time against size on logarithmic axes, a curve per contender, and the floor below them; PNG and SVG."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from shim.bench.cases import WITHOUT_SIZE, Case, size_text
from shim.bench.comparison import Comparison, series
from shim.bench.record import Record

__all__ = ["missing_for_plots", "plot"]

_STYLES: dict[str, dict[str, Any]] = {
    "ours": {"linewidth": 1.8},
    "peer": {"linewidth": 1.0, "linestyle": "--"},
    "floor": {"linewidth": 1.0, "linestyle": ":", "color": "0.45"},
}
_MARKERS = "osv^D*Ph"
_SIZE = (8.0, 5.5)  # inches
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
        for file in _picture(comparison, cases, folder / f"{collective}-{ranks}-ranks-{dtype}")
    ]


def _picture(comparison: Comparison, cases: list[Case], stem: Path) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for role, style in _STYLES.items():
        for index, name in enumerate(comparison.record.names(role)):
            points = [(case.bytes, time) for case in cases if (time := _time(comparison, case, name, role)) is not None]
            if points:
                sizes, times = zip(*points, strict=True)
                axes.plot(sizes, times, label=name, marker=_MARKERS[index % len(_MARKERS)], markersize=4, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([case.bytes for case in cases], [size_text(case.bytes) for case in cases], rotation=45)
    axes.set_xlabel("bytes per rank")
    axes.set_ylabel("microseconds of a call, slowest rank, median")
    axes.set_title(f"{cases[0].collective}, {cases[0].ranks} ranks, {cases[0].dtype}")
    figure.text(0.01, 0.005, _machine(comparison.record), fontsize=6, color="0.4")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    files = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    for file in files:
        figure.savefig(file, dpi=_DOTS)
    return files


def _time(comparison: Comparison, case: Case, name: str, role: str) -> float | None:
    return comparison.floor(case, name) if role == "floor" else comparison.median(case, name)


def _machine(record: Record) -> str:
    machine = record.machine
    return f"{machine['processor']}, {machine['processors_usable']} processors, kernel {machine['kernel']}"
