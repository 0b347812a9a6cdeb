"""Shows how a run gets on: a live table or a bar in a terminal, a line for each framework or kind of tensor elsewhere.

Tables are shown in the form that a terminal has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import Judgement, Verdict
from shim.conformance.examples.suite import Part
from shim.conformance.runner import Result

_LIVE = (Verdict.PASS, Verdict.RAN, Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE, Verdict.FAIL)
_REFRESHES = 8  # a second
_NO_LIMIT = 10_000  # columns


def fits(table: Table, console: Console, besides: int = 0) -> bool:
    """Tell whether *table* stands on *console* without a line of its cells being folded or cut, and leaves so many columns *besides*."""
    room = console.options.update(max_width=_NO_LIMIT)
    return Measurement.get(console, room, table).maximum + besides <= console.width


def first_that_fits(console: Console, *tables: Table) -> Table:
    """Return the first of *tables* that fits on *console*, the last one where none does."""
    return next((table for table in tables if fits(table, console)), tables[-1])


@contextmanager
def progress_bar(
    calls: Sequence[tuple[Any, str]], console: Console, things: str, tensors: str, title: Callable[[Any], str]
) -> Iterator[Callable[[Result[Any]], None]]:
    """Show a bar while *things*, each of *calls* with its kind of tensor, are run, or where output is no terminal, a line for every kind.

    *tensors* follows the kind's name, and *title* says what is shown of a thing. The value is a function to be called with every result.
    """
    left = Counter(kind for _, kind in calls)
    totals = dict(left)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=len(calls))

        def tell(result: Result[Any]) -> None:
            left[result.kind] -= 1
            bar.update(task, advance=1, description=f"{result.kind}{tensors}: {title(result.subject)}")
            if not left[result.kind] and not console.is_terminal:
                console.print(f"{result.kind}{tensors}: {totals[result.kind]} {things} run")

        yield tell


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
