"""The reports in ``docs/upstream/``: what a framework does otherwise than its documentation says, ready to be sent or known upstream.

Each begins with its title and a list: the functions that it is about, the release it was seen with, and where it is reported.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "upstream"
_SPAN = re.compile(r"`([\w.]+)`")
_LINK = re.compile(r"https://[^\s)>]+")


class Report(NamedTuple):
    """A report: its ``functions`` are named as in the parity record; ``upstream`` is the address of a thread, empty where none was found."""

    name: str
    title: str
    functions: tuple[str, ...]
    release: str
    upstream: str


def read_reports() -> list[Report]:
    """Return all reports. Raises KeyError for one without a line of the list."""
    return [_read(file) for file in sorted(FOLDER.glob("*.md")) if file.stem != "index"]


def _read(file: Path) -> Report:
    title, _, rest = file.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
    head = rest.strip().partition("\n\n")[0].replace("\n  ", " ")
    lines = dict(line.removeprefix("- ").split(": ", 1) for line in head.splitlines())
    upstream = _LINK.search(lines["Upstream"])
    functions = tuple(_SPAN.findall(lines["Functions"]))
    release = "-".join(lines["Release"].split()[:2]).rstrip(",")
    return Report(file.stem, title.strip(), functions, release, upstream[0] if upstream else "")
