"""Runs examples that are programs, with processes of their own, as their readers do: from a file, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from shim.conformance.examples.adapting import rewritten
from shim.conformance.examples.comparing import tokens_of
from shim.conformance.examples.example import Example
from shim.conformance.kinds import QUIET
from shim.launch.endings import how_it_ended
from shim.launch.identity import environment_of_ranks, rank_variables

_MAIN = '__name__ == "__main__"'
_STARTS = re.compile(r"\b(?:spawn|Process)\(")
_LAST_LINES = 12  # of what a program that fails has printed to its standard error
_CPUS = 2  # a program that starts a process for each CPU finds no more
_NOT_INHERITED = {*rank_variables(0, 1, ""), "PYTHONUNBUFFERED"}  # unbuffered, the parts of two processes' lines mix


class ProgramSight(NamedTuple):
    """What became of a program: ``failures`` with their lines, why its code was ``changed``, and what its processes ``printed``."""

    failures: list[tuple[int, str]]
    changed: list[str]
    printed: str


def is_program(example: Example) -> bool:
    """Tell whether *example* is a program that starts the ranks itself."""
    source = "\n".join(step.source for step in example.steps).replace("'", '"')
    return not example.is_case and _MAIN in source and _STARTS.search(source) is not None


def run_program(example: Example, substituted: bool, deadline: float) -> ProgramSight:
    """Run *example* in at most *deadline* seconds.

    It fails where its status is not 0, where one of its processes prints a traceback, and where a line that the document shows is
    not printed as often as it is shown. Which process prints it when, is not known from outside.
    """
    source, reasons = rewritten(example.framework, "\n".join(step.source for step in example.steps))
    line = example.steps[-1].line
    with tempfile.TemporaryDirectory(prefix="shim-example-") as folder:
        file = Path(folder) / f"{example.function.rpartition('.')[2]}_example.py"
        file.write_text(source + "\n", encoding="utf-8")
        starter = ["-m", "shim.substitution"] if substituted else []
        status, output, errors = _finished([sys.executable, *starter, str(file)], folder, deadline)
    if status is None:
        return ProgramSight([(line, f"had not ended after {deadline:g} s\n{_end_of(errors)}")], reasons, output)
    if status != 0 or "Traceback (most recent call last)" in errors:
        return ProgramSight([(line, f"{how_it_ended(status)}\n{_end_of(errors)}")], reasons, output)
    wanted = [(step.line, step.wanted) for step in example.steps if step.wanted is not None and step.wanted.is_printed]
    shown = [(place, text) for place, each in wanted for text in each.text.values()]
    shown += [(line, example.output)]
    return ProgramSight(list(unprinted(shown, output.splitlines())), reasons, output)


def _finished(command: list[str], folder: str, deadline: float) -> tuple[int | None, str, str]:
    """Return the status (None where it was late and has been ended), the output and the errors of the program *command*."""
    environment = {name: value for name, value in environment_of_ranks(1).items() if name not in _NOT_INHERITED}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": folder, **QUIET}
    with (
        open(Path(folder) / "output", "w+", encoding="utf-8", errors="replace") as output,
        open(Path(folder) / "errors", "w+", encoding="utf-8", errors="replace") as errors,
    ):
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=errors, start_new_session=True
        )
        os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:_CPUS])
        try:
            status: int | None = process.wait(deadline)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end_all(process)
        return status, _all_of(output), _all_of(errors)


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it has left running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _all_of(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _end_of(errors: str) -> str:
    return "\n".join(errors.strip().splitlines()[-_LAST_LINES:])


def unprinted(shown: Iterable[tuple[int, str]], printed: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Give the lines of the texts *shown*, which come with where they are shown, that were not *printed* as often."""
    left = Counter(tuple(tokens_of(line)) for line in printed)
    for where, text in shown:
        for line in filter(None, map(str.strip, text.splitlines())):
            left[tuple(tokens_of(line))] -= 1
            if left[tuple(tokens_of(line))] < 0:
                yield where, f"shown, and not printed by any process: {line}"
