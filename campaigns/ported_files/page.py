"""``docs/ported_files.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from campaigns.ported_files.functions import Outcome
from campaigns.ported_packages.listed import Package

_FILE = Path(__file__).resolve().parents[2] / "docs" / "ported_files.md"
_HEAD = """\
# Public files, ported with every scope

{files} files of public packages, which were chosen before a port was tried on any of them. `ported` are places that the
port has written, `left` entries of what it leaves, `changed` entries of what differs, each with the three scopes
`collectives` / `statements` / `files`. `silent` are uses of the source's API that are neither ported nor reported, as a
program finds them that shares nothing with the port. Most of what the wider scopes leave are functions of tensors that
no table has.

`python -m campaigns.ported_files --record` generates this page.

| file | to | ported | left | changed | silent |
| --- | --- | --- | --- | --- | --- |
"""
_FUNCTIONS = """
## Functions, run before and after

{functions} functions of these files, on two ranks with the same numbers before and after: the port computes with the
target's tensors where `--scope files` leaves nothing in the function and what it calls, and with the source's otherwise.

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
    text += _FUNCTIONS.format(functions=len({outcome.use for outcome in outcomes}))
    for outcome in outcomes:
        cells = [
            f"`{outcome.use.name}` of {outcome.use.file}",
            outcome.target.replace("_", "-"),
            outcome.tensors or "–",
            outcome.differs or "equal",
        ]
        text += f"| {' | '.join(cells)} |\n"
    _FILE.write_text(text, encoding="utf-8")
