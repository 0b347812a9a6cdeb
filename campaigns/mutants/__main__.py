"""Make each mistake of the list in the product, one at a time, and run the tests that should see it."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from campaigns.mutants.listed import MUTANTS
from campaigns.mutants.mutant import Mutant

_ROOT = Path(__file__).resolve().parents[2]
_LIMIT = 600.0  # seconds for the tests of one mutant; a test that hangs has its own deadline
_HELP = """\
Make each mistake of the list (campaigns/mutants/) in the product, one at a time, and run the tests that should see it.
A mutant is killed where a test fails. The exit status is 1 where one survives.
The files are changed in this folder, whose install has to be editable, and put back, on Ctrl-C too: have no other tests run in it.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what *arguments* say, print a line for each mutant, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m campaigns.mutants", description=_HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="the mutants to run, or the beginnings of their names; all"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants' names and files, and run nothing")
    given = parser.parse_args(arguments)
    chosen = [one for one in MUTANTS if not given.names or one.name.startswith(tuple(given.names))]
    for mutant in chosen if given.list else ():
        print(f"{mutant.name:45} {mutant.file}")
    if given.list or not chosen:
        return 0 if chosen else 2
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background has ignored, and tests send
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # with the files put back
    survivors: list[str] = []
    is_whole = True  # the engine that is built
    for number, mutant in enumerate(chosen, start=1):
        began = time.monotonic()
        if not mutant.is_native and not is_whole:
            _build(quickly=False)
        is_whole = not mutant.is_native
        verdict = _verdict(mutant)
        print(f"{number:3}/{len(chosen)} {mutant.name:45} {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
        if not verdict.startswith("killed"):
            survivors.append(mutant.name)
    if not is_whole:
        _build(quickly=False)
    print(
        f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed" + "".join(f"\n  {name}" for name in survivors)
    )
    return 1 if survivors else 0


def _verdict(mutant: Mutant) -> str:
    reason = mutant.why_it_does_not_fit(_ROOT)
    if reason:
        return f"does not fit: {reason}"
    with mutant.made(_ROOT):
        if mutant.is_native and not _build(quickly=True):
            return "cannot be built"
        return _verdict_of_tests(mutant.tests)


def _build(*, quickly: bool) -> bool:
    """Build the engine anew, *quickly* without optimising it as a whole, and tell whether that worked."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", "."]
    if quickly:
        command += ["--config-settings", "cmake.build-type=RelWithDebInfo"]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, check=False).returncode == 0


def _verdict_of_tests(tests: Sequence[str]) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", "--tb=no", *tests]
    try:
        ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return f"killed: no end within {_LIMIT:.0f} s"
    if ended.returncode == 0:
        return "SURVIVED"
    if ended.returncode != 1:  # nothing was tested
        return f"no verdict: pytest ended with {ended.returncode}"
    failed = [line.split(" - ")[0] for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"killed: {failed[0].partition(' ')[2]}" if failed else "killed"


if __name__ == "__main__":
    sys.exit(main())
