"""``docs/ported_packages.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from campaigns.ported_packages.fetching import PACONVERT
from campaigns.ported_packages.listed import Package
from campaigns.ported_packages.measuring import Counts

_FILE = Path(__file__).resolve().parents[2] / "docs" / "ported_packages.md"
_HEAD = f"""\
# Public packages, ported

`shim port` on the code of public packages, as the package index has them. Only files that use a collective API count.
Places are uses of its names, imports included, as a small program on Python's own parser finds them; it shares nothing
with the port. A place that is not ported is reported with its line, the reason and what to do. Next to the ports to
Paddle 3 stands what PaConvert {PACONVERT}, the converter from torch to Paddle, makes of the same files. PaConvert begins
lines that it leaves with `>>>>>>`, so that the file is no Python. The other columns are counted after these marks are
removed.

| column | counts |
| --- | --- |
| ported | places whose name is no longer the source's |
| reported | places in a statement that the report names |
| silent | places that are neither |
| unparsable | files that are no Python any more |
| comments | comments that are lost, in files that still parse |
| arguments | keywords such as `group`, `async_op`, `tag` and `timeout` that calls of the API had, and the file no longer has: reported, or now an attribute of the group |
| elsewhere | changed lines without a use of the API, but for functions that the port adds |

`python -m campaigns.ported_packages --record` generates this page. [ported_files.md](ported_files.md) has functions of
other public files, run before and after their ports, and as PaConvert writes them.

| package | to | files | places | ported | reported | silent | unparsable | comments | arguments | elsewhere |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Row:
    """What *tool* made of *package*, in *seconds*."""

    package: Package
    tool: str
    counts: Counts
    seconds: float
    target: str = "paddle_3"

    def cells(self) -> list[str]:
        """Return the page's cells."""
        counts, ours = self.counts, self.tool == "shim"
        to = self.target.replace("_", "-") if ours else self.tool
        numbers = [
            str(counts.files),
            str(counts.sites),
            str(counts.ported),
            str(counts.reported) if ours else "–",
            str(len(counts.unreported)) if ours else str(counts.sites - counts.ported),
            str(counts.unparsed),
            str(counts.comments),
            str(counts.arguments),
            str(len(counts.outside)) if ours else "–",
        ]
        return [f"{self.package.name} {self.package.version}", to, *numbers]

    def __str__(self) -> str:
        return f"{'  '.join(self.cells())}  ({self.seconds:.1f} s)"


def write(rows: Sequence[Row]) -> None:
    """Write the page."""
    lines = "".join(f"| {' | '.join(row.cells())} |\n" for row in rows)
    _FILE.write_text(_HEAD + lines, encoding="utf-8")
