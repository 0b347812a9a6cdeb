"""How ``--verify`` compares two runs, and explains their first difference by what the port wrote there."""

from __future__ import annotations

import difflib
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shim.cli.trace.diff import lines_of
from shim.port.reports.wording import place_of, shown

if TYPE_CHECKING:
    from shim.port.plan import Result
    from shim.trace.calls import Recording
    from shim.trace.differences import Difference

_LOSS = re.compile(r"loss\b.*?(-?\d+\.\d+(?:e[-+]?\d+)?|\bnan\b|-?\binf\b)", re.IGNORECASE)
_SOURCE = re.compile(r"(.*):(\d+)(?: in .*)?")
_TOLD = 3  # entries of the lines before a difference


def compare_calls(
    recordings: Sequence[Recording], trees: Sequence[Path], result: Result, tolerance: float
) -> bool | None:
    """Print how the calls of the original and of the port compare. Returns whether they are equal; None if there are none."""
    from shim.trace.differences import compare, within

    outcome = compare(*recordings, close=within(tolerance, [tree.parent / "values" for tree in trees]))
    if outcome.is_empty:
        return None
    explained = [line for each in outcome.differences[:1] for line in _explained(each, trees[1], result)]
    for line in [*lines_of(outcome), *explained]:
        for tree in trees:
            line = line.replace(f"{tree}/", "")
        typer.echo(f"verify: {line}")
    return not outcome.differences


def _explained(difference: Difference, tree: Path, result: Result) -> Iterator[str]:
    """Give what the port made of the line at which *difference* is, and the entries up to there."""
    found = _SOURCE.fullmatch(difference.right.shape.source) if difference.right else None
    files = {(tree / file.target.resolve().relative_to(Path.cwd().resolve())): file for file in result.changed}
    file = files.get(Path(found[1])) if found else None
    if file is None or found is None or difference.right is None:
        return
    number, (before, after) = int(found[2]), (text.splitlines() for text in file.texts)
    source, place = number, f"{shown(file.path)}:{number}"
    for what, first, end, start, until in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if start < number <= until:
            source = max(1, min(first + number - start, end))
            yield f"the port {'has left' if what == 'equal' else 'wrote'} {place}: {after[number - 1].strip()}"
            if what != "equal":
                calls = (call.shape.function for call in (difference.left, difference.right) if call is not None)
                yield f"  from line {source}: {before[source - 1].strip()}"
                yield f"  {' became '.join(dict.fromkeys(calls))}"
    entries = [each for each in file.findings if each.file_line <= source]
    for each in entries[-_TOLD:]:
        yield f"  {shown(file.path)} {place_of(file, each)} {each.entry.kind}: {each.entry.why} [{each.entry.rule}]"


def compare_losses(outputs: Sequence[bytes], tolerance: float) -> bool:
    """Print how the losses compare that the original and the port have printed, and return whether they are equal."""
    original, port = (_losses(output.decode(errors="replace")) for output in outputs)
    count = 0
    for rank in sorted({*original, *port}):
        for number, (one, other) in enumerate(zip_longest(original[rank], port[rank], fillvalue="none"), start=1):
            given = (*map(float, (one, other)),) if "none" not in (one, other) else (0.0, math.nan)
            if one != other and not math.isclose(*given, rel_tol=tolerance, abs_tol=tolerance):
                typer.echo(f"verify: {f'{rank} '.lstrip()}printed loss {number}: {one} | {other}")
                return False
            count += 1
    if count:
        typer.echo(f"verify: {count} printed losses are equal")
    return True


def _losses(output: str) -> dict[str, list[str]]:
    """Return the losses in *output* in their order, by rank as far as lines tell it."""
    found: dict[str, list[str]] = defaultdict(list)
    for rank, line in re.findall(r"^(\[\d+\](?= )|)(.*)$", output, re.MULTILINE):  # as `shim run` begins a line
        found[rank] += _LOSS.findall(line)[:1]
    return found
