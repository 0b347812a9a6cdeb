"""Make the same three mistakes with torch's gloo, Open MPI and this project, and show as Markdown what three ranks then say.

    python3 -m pip install '.[bench]'
    python3 examples/mistakes/compare.py > mistakes.md

A program that has not ended after 20 seconds is ended, which is told. Of tracebacks, what was raised is shown; what else is left out of
an output is marked: [...].
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PROGRAM = Path(__file__).with_name("mistake.py")
RANKS = 3
LIMIT = 20.0  # seconds
LONGEST = 24  # lines of an output

MISTAKES = {
    "shape": "One rank has another shape",
    "skipped": "One rank skips a call",
    "killed": "One rank is killed",
}
TITLES = {"torch": "torch.distributed on gloo", "openmpi": "Open MPI, through mpi4py", "shim": "shim"}


def main() -> None:
    for mistake, title in MISTAKES.items():
        print(f"### {title}\n")
        for library, name in TITLES.items():
            output, ended = run(library, mistake)
            print(f"**{name}**: {ended}\n\n```\n{shortened(output)}\n```\n", flush=True)


def run(library: str, mistake: str) -> tuple[str, str]:
    """Return what the ranks print, and how that ended."""
    with tempfile.TemporaryFile("w+") as file:
        began = time.monotonic()
        process = subprocess.Popen(
            command(library, mistake), stdout=file, stderr=subprocess.STDOUT, env=environment(), start_new_session=True
        )
        try:
            status = process.wait(LIMIT)
            ended = f"ended after {time.monotonic() - began:.1f} s with status {status}"
        except subprocess.TimeoutExpired:
            ended = f"still waiting after {LIMIT:.0f} s, and ended from outside"
        file.seek(0)
        output = file.read()  # not what it says when it is ended
        end(process)
    return output, ended


def command(library: str, mistake: str) -> list[str]:
    program = [str(PROGRAM), library, mistake]
    if library == "openmpi":
        placed = ["--map-by", "slot:OVERSUBSCRIBE", "--allow-run-as-root"]
        return ["mpiexec", "-n", str(RANKS), *placed, sys.executable, *program]
    if library == "torch":
        port = str(secrets.randbelow(20000) + 30000)
        return [sys.executable, "-c", STARTER, str(RANKS), port, sys.executable, *program]
    return [sys.executable, "-m", "shim", "run", "-n", str(RANKS), *program]


# Starts ranks that know nothing of each other's end, as a scheduler's would be, and waits for them all.
STARTER = """
import os, subprocess, sys
size, port, *program = sys.argv[1:]
job = {**os.environ, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
ranks = [subprocess.Popen(program, env={**job, "RANK": str(rank)}) for rank in range(int(size))]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(5)
    process.wait()


def shortened(output: str) -> str:
    """Return *output* without the frames of tracebacks, names of this machine, and its middle where it is long."""
    output = re.sub(r"/\S*/(?=[\w.-]+\.\w+)", "", output).replace(platform.node(), "host")
    lines = [line.rstrip() for line in without_frames(output.strip().splitlines())]
    if len(lines) > LONGEST:
        lines = [*lines[: LONGEST // 2], "[...]", *lines[-LONGEST // 2 :]]
    return "\n".join(lines) or "(nothing)"


def without_frames(lines: Iterable[str]) -> Iterator[str]:
    """Leave out of each rank's tracebacks all but what was raised; a line of a rank may begin with its number."""
    in_traceback: dict[str, bool] = {}
    for line in lines:
        prefix, text = re.fullmatch(r"(\[\w+\]:? )?(.*)", line).groups(default="")
        if text.startswith("Traceback (most recent call last)"):
            in_traceback[prefix] = True
        elif not (in_traceback.get(prefix) and text.startswith(" ")):
            in_traceback[prefix] = False
            yield line


if __name__ == "__main__":
    main()
