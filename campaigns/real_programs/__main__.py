"""Run real programs on gloo and on the engine, compare their results, and write the table of ``docs/real_programs.md``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaigns.real_programs import page, record
from campaigns.real_programs.environment import Environment, InstallError
from campaigns.real_programs.listed import PROGRAMS
from campaigns.real_programs.program import Program
from campaigns.real_programs.running import GLOO, WAYS, Run, run

_HELP = """\
Run programs that use torch.distributed, through libraries or through torch's own features, on two ranks: on gloo, on the engine by
SHIM_TORCH_BACKEND=1, and with `shim run --as-installed`. Compare the results that they show, on every rank.
Packages come from the package index, into a virtual environment of the command's own. All of them need about 6 GB and ten minutes.
The exit status is 1 where a program that gloo carries out ends otherwise on the engine.
"""
_LAUNCHER = "torch/distributed/elastic/multiprocessing/api.py"  # where torchrun begins to tell of ranks that failed
_TAIL = 40  # lines of the output of a run that failed
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "shim" / "real_programs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what *arguments* say, print a line for each run, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m campaigns.real_programs", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the programs to run; all")
    parser.add_argument("--list", action="store_true", help="print the programs, and run nothing")
    parser.add_argument("--record", action="store_true", help="record what comes of them, and write the table anew")
    parser.add_argument("--output", action="store_true", help="print what the programs print")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="how to start them; gloo always")
    parser.add_argument("--installed", action="store_true", help="take the environment as it is, and install nothing")
    parser.add_argument("--environment", type=Path, default=CACHE, help="the environment's folder; %(default)s")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.names}.difference(program.name for program in PROGRAMS)):
        parser.error(f"no program is called {', '.join(unknown)}; --list prints them")
    chosen = [program for program in PROGRAMS if not given.names or program.name in given.names]
    if given.list:
        print("\n".join(f"{program.name:32} {program.library}: {program.uses}" for program in chosen))
        return 0
    environment = Environment(given.environment, as_it_is=given.installed)
    print(f"environment {given.environment}: torch and this project", flush=True)
    try:
        environment.prepare()
    except InstallError as error:
        print(error)
        return 2
    ways = [way for way in WAYS if way == GLOO or way in given.ways]
    return _run_all(chosen, ways, environment, to_record=given.record, with_output=given.output)


def _run_all(
    chosen: Sequence[Program], ways: Sequence[str], environment: Environment, *, to_record: bool, with_output: bool
) -> int:
    wrong, not_on_gloo = [], []
    for number, program in enumerate(chosen, start=1):
        print(f"{number}/{len(chosen)} {program.name} ({program.library}: {program.uses})", flush=True)
        try:
            environment.install(program)
        except InstallError as error:
            print(f"  {error}")
            wrong.append(program.name)
            continue
        entry = _entry(program, ways, environment, with_output)
        if record.is_wrong(entry):
            wrong.append(program.name)
        if entry[GLOO]["ending"] != "ok":
            not_on_gloo.append(program.name)
        if to_record:
            record.write(record.read() | {program.name: entry})
            page.write()
    same = len(chosen) - len(wrong) - len(not_on_gloo)
    print(f"{same} of {len(chosen)} programs end on the engine as on gloo")
    for told, names in (("otherwise, or not installed", wrong), ("not on gloo either", not_on_gloo)):
        if names:
            print(f"{told}: {', '.join(names)}")
    return 1 if wrong else 0


def _entry(program: Program, ways: Sequence[str], environment: Environment, with_output: bool) -> dict[str, Any]:
    runs: dict[str, Run] = {}
    for way in ways:
        runs[way] = run(program, way, environment.python)
        if with_output or not runs[way].is_ok:
            own = runs[way].output.partition(_LAUNCHER)[0]
            print(own if with_output else "\n".join(own.splitlines()[-_TAIL:]), flush=True)
        print(f"  {way:12} {runs[way].seconds:5.1f} s  {runs[way].ending}", flush=True)
        if way == GLOO and not runs[way].is_ok:
            break
    entry = record.entry_of(program, environment.version_of(program.library), runs)
    for way in runs:
        if "results" in entry[way]:
            print(f"  {way:12} results: {entry[way]['results']}", flush=True)
    return entry


if __name__ == "__main__":
    sys.exit(main())
