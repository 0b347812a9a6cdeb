"""Rehearse the real programs, run them, and compare what their ranks call: ``python -m campaigns.real_programs.rehearsing``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from campaigns.real_programs.__main__ import CACHE
from campaigns.real_programs.environment import Environment, InstallError
from campaigns.real_programs.listed import PROGRAMS
from campaigns.real_programs.program import Program
from campaigns.real_programs.running import variables_of
from shim.trace.calls import Recording
from shim.trace.reading import read_recording

_WAYS = {
    "real run": ("trace", "run", "--as-installed"),
    "rehearsal": ("rehearse", "--as-installed"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the programs that *arguments* name, print a line for each, and return the exit status."""
    parser = argparse.ArgumentParser("python -m campaigns.real_programs.rehearsing", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the programs; all")
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--installed", action="store_true", help="take the environment as it is, and install nothing")
    parser.add_argument("--environment", type=Path, default=CACHE, help="the environment's folder; %(default)s")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.names}.difference(program.name for program in PROGRAMS)):
        parser.error(f"no program is called {', '.join(unknown)}")
    environment = Environment(given.environment, as_it_is=given.installed)
    environment.prepare()
    wrong = 0
    for program in PROGRAMS:
        if given.names and program.name not in given.names:
            continue
        try:
            environment.install(program)
        except InstallError as error:
            print(f"{program.name:32} {error}", flush=True)
            wrong += 1
            continue
        for ranks in given.ranks:
            told = _compared(program, ranks, environment.python)
            wrong += not told.startswith("equal" if ranks == 2 else ("equal", "not for"))  # all are for two ranks
            print(f"{program.name:32} {ranks} ranks: {told}", flush=True)
    return int(wrong > 0)


def _compared(program: Program, ranks: int, python: Path) -> str:
    """Return "equal" and how many calls that are, or in what the calls differ first."""
    recordings = []
    with tempfile.TemporaryDirectory(prefix="rehearsed-") as folder:
        for way, command in _WAYS.items():
            place = Path(folder, way[:4])  # of one length, as programs exchange paths
            place.mkdir()
            ended = subprocess.run(
                [
                    str(python),
                    "-m",
                    "shim",
                    *command,
                    "-n",
                    str(ranks),
                    "--to",
                    str(place / "calls"),
                    str(program.path),
                ],
                env=variables_of(place),
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
                timeout=4 * program.seconds,
            )
            if ended.returncode and way == "real run":
                return "not for so many ranks"
            if ended.returncode:
                return f"rehearsal: {ended.stdout.strip()}\n{ended.stderr.strip()}"
            recordings.append(read_recording(place / "calls"))
    one, other = ([list(_calls_of(recording, rank)) for rank in range(ranks)] for recording in recordings)
    for rank in range(ranks):
        for number, (really, rehearsed) in enumerate(zip_longest(one[rank], other[rank]), start=1):
            if really != rehearsed:
                return f"rank {rank}'s call {number} is {really}, rehearsed {rehearsed}"
    count = sum(map(len, one))
    return f"equal, {count} calls" if count else "no calls"


def _calls_of(recording: Recording, rank: int) -> Iterator[str]:
    for call in recording.ranks[rank].calls:
        shape = call.shape
        if not shape.is_internal:
            of_objects = f"{shape.collective} of objects, root {shape.root}, peer {shape.peer}"
            yield f"{of_objects if shape.is_of_objects else shape.text()} of ranks {shape.group.ranks}"


if __name__ == "__main__":
    sys.exit(main())
