"""Run other projects' tests of distributed code on gloo and on the engine, compare test by test, and write ``docs/suites.md``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaigns.real_programs.environment import Environment, InstallError
from campaigns.suites import page, record, sources
from campaigns.suites.listed import SUITES
from campaigns.suites.running import PASSED, Run, run
from campaigns.suites.suite import GLOO, Suite

_HELP = """\
Run other projects' own tests of distributed code once on gloo and once on the engine, with SHIM_TORCH_BACKEND=1, and compare them test
by test. Where a test passes on gloo alone, it runs once more both ways. Tests come from GitHub or from source distributions.
Packages come from the package index, into a virtual environment of the command's own for each release of torch. All of it takes about an hour.
The exit status is 1 where a test passes on gloo and fails on the engine, and no reason is listed.
"""
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "shim" / "suites"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what *arguments* say, print a line for each run, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m campaigns.suites", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the suites to run; all")
    parser.add_argument("--list", action="store_true", help="print the suites, and run nothing")
    parser.add_argument("--record", action="store_true", help="record what comes of them, and write the page anew")
    parser.add_argument("--page", action="store_true", help="write the page from what is on record, and run nothing")
    parser.add_argument("--torch", default="2.13.0", metavar="VERSION", help="the release of torch; %(default)s")
    parser.add_argument("--installed", action="store_true", help="take the environment as it is, and install nothing")
    parser.add_argument("--folder", type=Path, default=_CACHE, help="of the environments and sources; %(default)s")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.names}.difference(suite.name for suite in SUITES)):
        parser.error(f"no suite is called {', '.join(unknown)}; --list prints them")
    chosen = [suite for suite in SUITES if not given.names or suite.name in given.names]
    if given.list:
        print("\n".join(f"{suite.name:20} {suite.repository or suite.library} {suite.revision}" for suite in chosen))
        return 0
    if given.page:
        page.write()
        return 0
    environment = Environment(given.folder / f"torch-{given.torch}", as_it_is=given.installed, torch=given.torch)
    try:
        environment.prepare()
        return _run_all(chosen, environment, given.folder / "sources", given.torch, to_record=given.record)
    except InstallError as error:
        print(error)
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd)}\n{error.output}")
    return 2


def _run_all(chosen: Sequence[Suite], environment: Environment, cache: Path, torch: str, *, to_record: bool) -> int:
    unexplained = 0
    for number, suite in enumerate(chosen, start=1):
        print(f"{number}/{len(chosen)} {suite.name}", flush=True)
        environment.install(suite)
        fetched = sources.fetch(suite, cache, environment.python)
        entry = _entry(suite, environment, fetched)
        for test, reason in page.reasons(suite.name, torch, entry):
            print(f"  differs: {test}: {reason or 'no reason is listed'}")
            unexplained += not reason
        if to_record:
            entries = record.read()
            entries.setdefault(suite.name, {})[torch] = entry
            record.write(entries)
            page.write()
    print(
        "every test that passes on gloo passes on the engine, or has its reason"
        if not unexplained
        else f"{unexplained} without a reason"
    )
    return int(bool(unexplained))


def _entry(suite: Suite, environment: Environment, fetched: Path) -> dict[str, Any]:
    runs: dict[str, Run] = {}
    again: dict[str, dict[str, Run]] = {}
    for way in suite.ways:
        runs[way] = run(suite, way, environment.python, fetched)
        passed = sum(ending == PASSED for ending in runs[way].tests.values())
        print(f"  {way:9} {passed} of {len(runs[way].tests)} pass in {runs[way].seconds:.0f} s", flush=True)
        if way != GLOO and (different := record.differing(runs[GLOO], runs[way])):
            again[way] = {one: run(suite, one, environment.python, fetched, different) for one in (GLOO, way)}
    return record.entry_of(environment.version_of(suite.library), runs, again)


if __name__ == "__main__":
    sys.exit(main())
