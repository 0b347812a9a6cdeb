"""Port public packages and measure what comes of it: ``python -m campaigns.ported_packages``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from campaigns.ported_packages import fetching, page
from campaigns.ported_packages.listed import PACKAGES, Package
from campaigns.ported_packages.measuring import Counts, measure
from shim.port import Plan
from shim.port.apis import APIS
from shim.port.run import port_paths

_HELP = """\
Fetch packages from the package index, port every file of theirs that uses collectives, and count with the standard library's parser what came
of it. PaConvert, the converter from torch to Paddle, gets the same files. Nothing of the packages is installed or run.
The exit status is 1 where a file no longer parses, a use of the API is neither ported nor reported, or a line without one has changed.
"""
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "shim" / "ported_packages"


def main(arguments: Sequence[str] | None = None) -> int:
    """Port what *arguments* say, print a line for each package and target, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m campaigns.ported_packages", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the packages; all")
    parser.add_argument("--record", action="store_true", help="write docs/ported_packages.md anew")
    parser.add_argument(
        "--details",
        action="store_true",
        help="print each place that is neither ported nor reported, or changed without need",
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="where packages are kept; %(default)s")
    given = parser.parse_args(arguments)
    rows: list[page.Row] = []
    for package in PACKAGES:
        if not given.names or package.name in given.names:
            folder = fetching.fetch(package, given.cache)
            for target in package.targets:
                row = _ported(package, folder, target)
                rows.append(row)
                print(row, flush=True)
                if given.details:
                    print("".join(f"  {place}\n" for place in (*row.counts.unreported, *row.counts.outside)), end="")
            if package.source == "torch":
                rows.append(page.Row(package, "PaConvert", *_by_paconvert(_chosen(package, folder), given.cache)))
                print(rows[-1], flush=True)
    if given.record:
        page.write(rows)
    wrong = [
        row
        for row in rows
        if row.tool == "shim" and (row.counts.unparsed or row.counts.unreported or row.counts.outside)
    ]
    return 1 if wrong else 0


def _ported(package: Package, folder: Path, target: str) -> page.Row:
    began = time.perf_counter()
    result = port_paths(_chosen(package, folder), Plan(package.source, target), jobs=os.cpu_count() or 1)
    seconds = time.perf_counter() - began
    counts = Counts()
    for file in result.files:
        if file.path.suffix == ".py" and file.problem is None:
            told = [finding.file_line for finding in file.findings]
            one = measure(str(file.path.relative_to(folder)), *file.texts, APIS[package.source].framework, told)
            if one is not None:
                counts.add(one)
    return page.Row(package, "shim", counts, seconds, target)


def _chosen(package: Package, folder: Path) -> list[Path]:
    return [folder / part for part in package.parts] or [folder]


def _by_paconvert(chosen: Sequence[Path], cache: Path) -> tuple[Counts, float]:
    """Return the counts of PaConvert for the files in *chosen* that use collectives."""
    counts, seconds = Counts(), 0.0
    for file in sorted(file for path in chosen for file in (path.rglob("*.py") if path.is_dir() else [path])):
        before = file.read_text(encoding="utf-8", errors="replace")
        if measure(file.name, before, before, "torch", None) is None:
            continue
        began = time.perf_counter()
        after = fetching.converted(file, cache)
        seconds += time.perf_counter() - began
        one = measure(file.name, before, "(" if after is None else after, "torch", None)
        if one is not None:
            counts.add(one)
    return counts, seconds


if __name__ == "__main__":
    sys.exit(main())
