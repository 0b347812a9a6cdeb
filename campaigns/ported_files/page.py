"""``docs/ported_files.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from campaigns.ported_files.functions import PACONVERT, Outcome
from campaigns.ported_packages.listed import Package

_FILE = Path(__file__).resolve().parents[2] / "docs" / "ported_files.md"
_HEAD = """\
# Public files, ported with every scope

{files} files of public packages, chosen before any of them was ported; faults that they showed have since been mended
(a crash, and a quote in a formatted string). Each count stands for the three scopes: `collectives` / `statements` /
`files`. `silent` counts uses of the source's API that are neither ported nor reported; a program of its own finds them,
which shares no code with the port. Most of what the wider scopes leave are functions of tensors that no table has.

`python -m campaigns.ported_files --record` generates this page.

| file | to | ported places | entries: left | entries: changed | silent |
| --- | --- | --- | --- | --- | --- |
"""
_FUNCTIONS = """
## Functions, run before and after

{functions} functions of these files, run on two ranks with the same numbers before and after. The port computes with
the target's tensors if `--scope files` leaves nothing in the function or in what it calls, else with the source's. The
rows of PaConvert are its output for the same file, unchanged, on shim's frontend of Paddle. Functions with equal
results: {counts}.

| function | to | tensors of | outcome |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Row:
    """What became of a file on the way to *target* with *scope*."""

    package: Package
    target: str
    scope: str
    places: int
    left: int
    changed: int
    silent: int
    unparsed: int

    @property
    def name(self) -> str:
        """The package, its version and the file's path."""
        return f"{self.package.name} {self.package.version}: {'/'.join(Path(self.package.parts[0]).parts[-3:])}"

    def __str__(self) -> str:
        counts = f"{self.places} ported, {self.left} left, {self.changed} changed, {self.silent} silent"
        return f"{self.name} to {self.target}, {self.scope}: {counts}{', NO PYTHON' if self.unparsed else ''}"


def write(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> None:
    """Write the page."""
    text = _HEAD.format(files=len({row.name for row in rows}))
    for name, target in dict.fromkeys((row.name, row.target) for row in rows):
        of_file = [row for row in rows if (row.name, row.target) == (name, target)]
        columns = [[row.places for row in of_file], [row.left for row in of_file], [row.changed for row in of_file]]
        counts = [" / ".join(map(str, column)) for column in columns]
        cells = [name, target.replace("_", "-"), *counts, str(sum(row.silent for row in of_file))]
        text += f"| {' | '.join(cells)} |\n"
    kinds = Counter(outcome.target for outcome in outcomes if outcome.tensors and not outcome.differs)
    told = (f"{number} {_way(target)}" for target, number in kinds.items())
    functions = len({outcome.use for outcome in outcomes})
    text += _FUNCTIONS.format(functions=functions, counts=", ".join(told))
    for outcome in outcomes:
        cells = [
            f"`{outcome.use.name}` of {outcome.use.file}",
            outcome.target.replace("_", "-"),
            outcome.tensors or "–",
            _told(outcome),
        ]
        text += f"| {' | '.join(cells)} |\n"
    _FILE.write_text(text, encoding="utf-8")


def _way(target: str) -> str:
    return f"by {PACONVERT}" if target == PACONVERT else f"to {target.replace('_', '-')}"


def _told(outcome: Outcome) -> str:
    result = (outcome.differs or ("equal" if outcome.tensors else "left")).replace("|", "/")[:100]
    return f"{result}; reported as {', '.join(outcome.told)}" if outcome.differs and outcome.told else result
