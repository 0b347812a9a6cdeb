"""Shows how a run gets on. Nothing is drawn while a turn is measured: on a small machine, drawing would take part of it."""

from __future__ import annotations

import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

_LINE_SECONDS = 30.0  # between two lines where output is no terminal
_DRAW_SECONDS = 0.5  # between two pictures of the bar


class ProgressBar:
    """A bar with the time that is left in a terminal, a line now and then elsewhere. Use it as a context manager.

    ``total`` is the sum of the weights that it will be advanced by.
    """

    def __init__(self, total: float, console: Console) -> None:
        self._console, self._total, self._done = console, total, 0.0
        self._begun = self._drawn = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
            expand=True,
            transient=True,
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> ProgressBar:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def begin(self, text: str) -> None:
        """Say what is measured next."""
        self._bar.update(self._task, description=text)
        self._draw()

    def advance(self, weight: float) -> None:
        """Count what has been measured."""
        self._done += weight
        self._bar.update(self._task, completed=self._done)

    def _draw(self) -> None:
        now = time.monotonic()
        if self._console.is_terminal:
            if now - self._drawn >= _DRAW_SECONDS:
                self._drawn = now
                self._bar.refresh()
        elif now - self._drawn >= _LINE_SECONDS:
            self._drawn = now
            elapsed = now - self._begun
            share = self._done / self._total
            left = str(timedelta(seconds=round(elapsed / share - elapsed))) if share else "?"
            self._console.print(f"{share:4.0%} measured, {left} left", highlight=False)
