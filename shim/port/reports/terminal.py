"""The result for a reader at a terminal, or in a log; a file's change is a unified diff, which ``git apply`` and ``patch`` read."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rich.console import Console
from rich.text import Text

from shim.port.plan import FileResult, Result
from shim.port.reports.wording import place_of, relative, rules_of, shown, summary, tensors_told

_NO_END = b"\n\\ No newline at end of file\n"


def diff_of(file: FileResult) -> bytes:
    """Return the change of *file*, in the bytes of the file; nothing where it does not change."""
    name = os.fsencode(relative(file.path))
    names = (b"a/" + name, b"b/" + name) if not name.startswith(b"/") else (name, name)
    if file.is_new:
        names = (b"/dev/null", names[1])
    lines = difflib.diff_bytes(difflib.unified_diff, _split(file.before), _split(file.after), *names)
    return b"".join(line if line.endswith(b"\n") else line + _NO_END for line in lines)


def _split(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a file must not steer the terminal
_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
_KINDS = {"left": "bold red", "changed": "yellow"}


def print_diff(result: Result, console: Console) -> None:
    """Print every change: with colours on a terminal; elsewhere the bytes, so that the output is a patch."""
    for file in result.changed:
        diff = diff_of(file)
        if not console.is_terminal and (raw := getattr(console.file, "buffer", None)) is not None:
            console.file.flush()
            raw.write(diff)
            raw.flush()
            continue
        for line in diff.decode(file.encoding, "replace").split("\n")[:-1]:
            style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
            console.print(Text(_visible(line), style=style), soft_wrap=True)


def print_entries(result: Result, console: Console) -> None:
    """Print how many entries each rule has, and what has to be known of each file: where, why, what to do."""
    if result.count("left") + result.count("changed") > 1:
        for kind in _KINDS:
            if rules := rules_of(result, kind):
                console.print(
                    Text(f"{kind}: {', '.join(f'{number} {rule}' for rule, number in rules)}"), soft_wrap=True
                )
    for file in result.files:
        lines = list(_lines(file))
        if lines:
            console.print(Text(_visible(shown(file.path)), style="bold"), soft_wrap=True)
            for line in lines:
                console.print(line, soft_wrap=True)
    if result.count("left") + result.count("changed"):
        console.print(Text("shim port --explain RULE shows code before and after.", style="dim"), soft_wrap=True)


def print_stats(result: Result, console: Console) -> None:
    """Print how much of each file is done, the share of places that are ported among those and the ones that are left, and the entries of each rule."""
    files = [(shown(file.path), file.places, replace(result, files=[file])) for file in result.files]
    rows = [("file", "ported", "left", "to look at", "done")]
    for name, places, alone in (*files, ("all files", result.places, result)):
        left, changed = alone.count("left"), alone.count("changed")
        done = f"{100 * places // (places + left)}%" if places + left else "-"
        rows.append((_visible(name), str(places), str(left), str(changed), done))
    rules = Counter(dict(rules_of(result, "left"))) + Counter(dict(rules_of(result, "changed")))
    _print_table(rows, console)
    if rules:
        _print_table([("rule", "entries"), *((rule, str(number)) for rule, number in rules.most_common())], console)


def _print_table(rows: Sequence[tuple[str, ...]], console: Console) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        console.print(Text("  ".join([first.ljust(widths[0]), *cells])), soft_wrap=True)


def print_summary(result: Result, console: Console, written: bool) -> None:
    """Print the last lines: whose tensors the program has, how much was ported, how much is left, and how to compare the original with the port."""
    if told := tensors_told(result):
        console.print(Text(told), soft_wrap=True)
    console.print(Text(summary(result, written), style="bold"), soft_wrap=True)
    if result.verify:
        console.print(Text(f"To compare the original with the port: {_visible(result.verify)}"), soft_wrap=True)


def _lines(file: FileResult) -> Iterator[Text]:
    if file.problem is not None:
        yield Text.assemble(("  not ported", "bold red"), f": {_visible(file.problem.why)}")
        yield Text(f"      {_visible(file.problem.advice)}", style="dim")
    for finding, following in zip_longest(file.findings, file.findings[1:]):
        entry = finding.entry
        place = Text.assemble(f"  {place_of(file, finding)}  ", (entry.kind, _KINDS[entry.kind]))
        yield Text.assemble(place, f": {_visible(entry.why)} ", (f"[{entry.rule}]", "dim"))
        if following is None or following.entry.advice != entry.advice:  # once for several places in a row
            yield Text(f"      {_visible(entry.advice)}", style="dim")


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.removesuffix("\r"))
