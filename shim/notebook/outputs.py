"""What a cell on ranks shows: their output side by side, and one error for all of them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from IPython.display import display

from shim.errors import ShimError
from shim.launch.output import what_it_says
from shim.launch.pool import Outcome
from shim.notebook.cells import Raised

_MOST_SHOWN = 20_000  # characters of a rank's output of one cell
_COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_LEFT = 'style="text-align: left; vertical-align: top; padding-right: 1.5em"'


class RanksError(ShimError, RuntimeError):
    """A cell failed on some ranks."""


def in_words(ranks: Iterable[int]) -> str:
    """Return "rank 2" or "ranks 0-3, 5"."""
    numbers = sorted(ranks)
    return f"rank{'s' * (len(numbers) > 1)} {_spans(numbers)}"


def _spans(numbers: Sequence[int]) -> str:
    """Return "0-3, 5" for the numbers 0, 1, 2, 3 and 5."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


class Columns:
    """A cell's display with a column for each rank. It is shown as ranks print where it *can_change*, else at the end."""

    def __init__(self, size: int, can_change: bool) -> None:
        self._texts = [""] * size
        self._left_out = [0] * size
        self._can_change = can_change
        self._handle: Any = None
        self._shown: object = None

    def add(self, rank: int, text: str) -> None:
        """Add what *rank* has printed."""
        whole = self._texts[rank] + text
        self._texts[rank] = whole[-_MOST_SHOWN:]
        self._left_out[rank] += len(whole) - len(self._texts[rank])

    def show(self, is_last: bool = False) -> None:
        """Bring the display up to date; at last, ranks that have printed the same share a column."""
        texts = [self._text(rank) for rank in range(len(self._texts))]
        columns = list(_grouped(enumerate(texts)).items()) if is_last else [(text, [i]) for i, text in enumerate(texts)]
        if not any(texts) or columns == self._shown or not (is_last or self._can_change):
            return
        self._shown = columns
        told = {"text/html": _as_table(columns), "text/plain": _as_lines(columns)}
        if self._handle is None:
            show: Any = display  # which has no types
            self._handle = show(told, raw=True, display_id=True)
        else:
            self._handle.update(told, raw=True)

    def _text(self, rank: int) -> str:
        lines = _COLOURS.sub("", self._texts[rank]).rstrip("\n").split("\n")
        if self._left_out[rank]:
            lines.insert(0, f"({self._left_out[rank]} characters before this are not shown)")
        # A progress bar goes back to the beginning of its line, and overwrites it.
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def _grouped(texts: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    """Return the ranks that have each text."""
    ranks: dict[str, list[int]] = {}
    for rank, text in texts:
        ranks.setdefault(text, []).append(rank)
    return ranks


def _as_table(columns: Sequence[tuple[str, list[int]]]) -> str:
    heads = "".join(f"<th {_LEFT}>{in_words(ranks)}</th>" for _, ranks in columns)
    cells = "".join(f"<td {_LEFT}><pre>{html.escape(text)}</pre></td>" for text, _ in columns)
    return f"<table><tr>{heads}</tr><tr>{cells}</tr></table>"


def _as_lines(columns: Sequence[tuple[str, list[int]]]) -> str:
    return "\n".join(f"[{_spans(ranks)}] {line}" for text, ranks in columns if text for line in text.split("\n"))


def failure_of(
    outcomes: Sequence[Outcome], why_interrupted: str, by_user: bool, remarks: Iterable[str]
) -> BaseException | None:
    """Return the error of a cell with these *outcomes*, None where no rank failed: each rank's error, the same ones once, the cause first.

    It shows what became of the other ranks, and the *remarks* in the end.
    """
    raised = {outcome.rank: it for outcome in outcomes if (it := _raised(outcome, why_interrupted)) is not None}
    if not raised:
        return None
    same: dict[object, list[int]] = {}
    for rank, it in sorted(raised.items(), key=lambda item: (item[1].is_victim, item[1].is_interrupt, item[1].when)):
        lines = [line.encode(errors="surrogateescape") for line in (it.headline, *it.traceback)]
        same.setdefault(what_it_says(lines), []).append(rank)
    parts = []
    for ranks in same.values():
        first = raised[min(ranks)]
        parts.append((f"{in_words(ranks)}: {first.headline}", first.traceback))
    if finished := [outcome.rank for outcome in outcomes if outcome.rank not in raised]:
        parts.append((f"{in_words(finished)}: finished the cell", ()))
    headline = parts[0][0]
    error = KeyboardInterrupt(headline) if by_user else RanksError(headline)
    shown = [line for head, lines in parts for line in (head, *lines, "")] + [*remarks]
    shown[0] = f"{type(error).__name__}: {headline}"
    error.__dict__["_render_traceback_"] = lambda: shown  # IPython shows this instead of a traceback
    return error


def _raised(outcome: Outcome, why_interrupted: str) -> Raised | None:
    if outcome.error is not None:  # it died, or was killed
        head, *lines = outcome.error.removeprefix(f"rank {outcome.rank} ").split("\n")
        return Raised(head, tuple(lines), is_interrupt=outcome.is_late)
    raised: Raised | None = outcome.value.raised
    if raised is not None and raised.is_interrupt and why_interrupted:
        return raised._replace(headline=why_interrupted)
    return raised
