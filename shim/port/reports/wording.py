"""Words that all reports share."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from shim.port.apis import APIS
from shim.port.plan import FileResult, Finding, Result


def counted(number: int, noun: str) -> str:
    """Return *number* and *noun*, in the plural if that is right."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def relative(path: Path) -> str:
    """Return *path* as seen from the current folder, where it is below that."""
    absolute = os.path.abspath(path)
    below = os.path.relpath(absolute)
    return absolute if below.startswith("..") else below


def shown(path: Path) -> str:
    """Return *path* as ``relative`` does, as text that has an encoding: a name in a file system may have none."""
    return relative(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def place_of(file: FileResult, finding: Finding) -> str:
    """Return where *finding* is within *file*."""
    place = f"{finding.entry.line}:{finding.entry.column}"
    return f"cell {finding.cell}, {place}" if finding.cell else place


def code_of(file: FileResult, finding: Finding) -> str:
    """Return the line of *file* at which *finding* stands, without the blanks around it."""
    return "".join(file.lines[finding.file_line - 1 : finding.file_line]).strip()


def rules_of(result: Result, kind: str) -> list[tuple[str, int]]:
    """Return the rules of the entries of *kind*, each with their number, the most frequent first."""
    entries = (finding.entry for file in result.files for finding in file.findings)
    return Counter(entry.rule for entry in entries if entry.kind == kind).most_common()


def api_name(name: str) -> str:
    """Return the *name* of an API as the command line has it."""
    return name.replace("_", "-")


def title(result: Result) -> str:
    """Return what the port is."""
    plan = result.plan
    return f"port from {api_name(plan.source)} to {api_name(plan.target)}, onto {plan.onto}"


def summary(result: Result, written: bool) -> str:
    """Return the result in one sentence."""
    parts = [
        f"{counted(len(result.changed), 'file')} {'changed' if written else 'would change'}",
        f"{counted(result.places, 'place')} ported",
        f"{counted(result.count('left'), 'place')} left to you",
        f"{counted(result.count('changed'), 'place')} to look at",
    ]
    if result.unported:
        parts.append(f"{counted(len(result.unported), 'file')} not ported")
    if result.known:
        parts.append(f"{counted(result.known, 'entry')} known from the baseline")
    return f"{', '.join(parts)}; {counted(result.searched, 'file')} searched."


def tensors_told(result: Result) -> str:
    """Return whose tensors the ported program computes with, and on which devices; empty where the port is no question of that."""
    plan = result.plan
    ours, theirs = APIS[plan.source].framework, APIS[plan.target].framework
    if ours == theirs or not any(file.places and file.path.suffix in (".ipynb", ".py") for file in result.files):
        return ""
    if plan.scope != "collectives":
        where = "the code that calls collectives" if plan.scope == "statements" else "all functions that are no models"
        told = f"Tensors: {theirs}'s in {where}, {ours}'s in all other"
        return f"{told}. {'Port that, too, before you run the program.' if plan.onto == 'native' else ''}".rstrip()
    if plan.onto == "native":
        return f"Tensors: still {ours}'s, which {theirs} itself does not take."
    there = "; to run on Ascend, port with --onto native" if theirs == "mindspore" else ""
    return f"Tensors: still {ours}'s, on the devices on which {ours} has them{there}."
