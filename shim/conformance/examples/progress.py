"""Shows how a run of examples gets on: a live table in a terminal, a line for each framework elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging.verdicts import Judgement, Verdict
from shim.conformance.examples.sides import Part
from shim.conformance.forms import first_that_fits

_LIVE = (Verdict.PASS, Verdict.RAN, Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE, Verdict.FAIL)
_REFRESHES = 8  # a second


class ProgressTable:
    """Counts verdicts by framework, side and kind of tensor while they come in. Use it as a context manager; it leaves the terminal as it was.

    ``totals`` has the number of examples that are to be run in each part.
    """

    def __init__(self, totals: Mapping[Part, int], console: Console) -> None:
        self._totals = totals
        self._console = console
        self._counts: dict[Part, Counter[Verdict]] = {part: Counter() for part in totals}
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("starting rank processes", total=sum(totals.values()))
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=_REFRESHES, transient=True)

    def __enter__(self) -> ProgressTable:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def begin(self, example: Example) -> None:
        """Show that *example* runs now."""
        ranks = f"{example.ranks} rank{'s' * (example.ranks != 1)}"
        self._bar.update(self._task, description=f"{escape(example.name)} [dim]({ranks})[/dim]")

    def count(self, part: Part, judgement: Judgement) -> None:
        """Count one more *judgement* in *part*."""
        self._counts[part][judgement.verdict] += 1
        self._bar.update(self._task, advance=1)
        if not self._console.is_terminal and self._done(part) == self._totals[part]:
            number = self._totals[part]
            self._console.print(Text(f"{part.title}: {number} example{'s' * (number != 1)} run"))

    def _done(self, part: Part) -> int:
        return sum(self._counts[part].values())

    def _picture(self) -> Group:
        return Group(first_that_fits(self._console, self._by_columns(), self._in_words()), self._bar)

    def _by_columns(self) -> Table:
        table = Table("framework", box=None, padding=(0, 2), header_style="dim")
        for head in ("run", *(verdict.value for verdict in _LIVE), *self._others()):
            table.add_column(head, justify="right")
        for part, counts in self._counts.items():
            numbers = [counts[verdict] for verdict in (*_LIVE, *map(Verdict, self._others()))]
            table.add_row(part.title, self._run(part), *(str(number) if number else "" for number in numbers))
        return table

    def _in_words(self) -> Table:
        """Return the table for a terminal that has no room for a column for each verdict."""
        table = Table("framework", "run", "verdicts", box=None, padding=(0, 2), header_style="dim")
        for part, counts in self._counts.items():
            words = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
            table.add_row(part.title, self._run(part), ", ".join(words))
        return table

    def _run(self, part: Part) -> str:
        return f"{self._done(part)} of {self._totals[part]}"

    def _others(self) -> Sequence[str]:
        seen = {verdict for counts in self._counts.values() for verdict in counts}
        return [verdict.value for verdict in Verdict if verdict in seen and verdict not in _LIVE]
