"""Port thirty public files, and run functions of theirs before and after: ``python -m campaigns.ported_files``."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from campaigns.ported_files import page
from campaigns.ported_files.functions import PACONVERT, Outcome, run_uses
from campaigns.ported_files.listed import FILES, USES
from campaigns.ported_packages import fetching
from campaigns.ported_packages.__main__ import CACHE
from campaigns.ported_packages.listed import Package
from campaigns.ported_packages.measuring import measure
from shim.launch.pool import RankPool
from shim.port import Plan, port_source
from shim.port.apis import APIS
from shim.port.plan import Scope

_HELP = """\
Fetch public files from the package index, port each with every scope, and count what came of it. Some of their functions are run on two ranks
before and after, on the same numbers: for that the three frameworks have to be installed.
The exit status is 1 where a file no longer parses, a use of the API is neither ported nor reported, or a function computes something else.
"""
_SCOPES: tuple[Scope, ...] = ("collectives", "statements", "files")


def main(arguments: Sequence[str] | None = None) -> int:
    """Port the files that *arguments* name, print a line for each port and function, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m campaigns.ported_files", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of files' paths; all")
    parser.add_argument("--record", action="store_true", help="write docs/ported_files.md anew")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where packages are kept; %(default)s")
    given = parser.parse_args(arguments)
    rows: list[page.Row] = []
    outcomes: list[Outcome] = []
    with RankPool(2) as ranks:
        for package in FILES:
            if given.names and not any(name in package.parts[0] for name in given.names):
                continue
            file = fetching.fetch(package, given.cache) / package.parts[0]
            for target, scope in itertools.product(package.targets, _SCOPES):
                rows.append(_ported(package, file, target, scope))
                print(rows[-1], flush=True)
            uses = [use for use in USES if package.parts[0].endswith(use.file)]
            converted = fetching.converted(file, given.cache) if uses and package.source == "torch" else None
            for outcome in run_uses(file, uses, package.source, package.targets, ranks, converted):
                outcomes.append(outcome)
                print(outcome, flush=True)
    if given.record:
        page.write(rows, outcomes)
    return int(
        any(row.silent or row.unparsed for row in rows)
        or any(each.differs and not each.told for each in outcomes if each.target != PACONVERT)
    )


def _ported(package: Package, file: Path, target: str, scope: Scope) -> page.Row:
    before = file.read_text(encoding="utf-8")
    ported = port_source(before, Plan(package.source, target, scope=scope))
    framework, told = APIS[package.source].framework, [entry.line for entry in ported.entries]
    counts = measure(file.name, before, ported.text, framework, told)
    assert counts is not None  # each uses the API
    kinds = Counter(entry.kind for entry in ported.entries)
    return page.Row(
        package, target, scope, ported.places, kinds["left"], kinds["changed"], len(counts.unreported), counts.unparsed
    )


if __name__ == "__main__":
    sys.exit(main())
