"""The jobs that take too long to run on every change: ``python -m checks nightly [job ...]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_PYTHON = sys.executable
_PYTEST = (_PYTHON, "-m", "pytest", "-p", "no:cacheprovider")
_HELP = "Run the jobs that take too long for every change: before a release, and after a change of a job's subject."


class Job(NamedTuple):
    """Commands that run one after the other, in the tree's root. ``subject`` says after which changes to run them.

    ``{build}`` in an argument stands for an empty folder of the job.
    """

    subject: str
    commands: tuple[tuple[str, ...], ...]
    variables: tuple[tuple[str, str], ...] = ()


def _engine_tests(sanitizer: str, *options: str) -> Job:
    return Job(
        "native/",
        (
            *_built(
                "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSHIM_BUILD_TESTS=ON", f"-DSHIM_SANITIZE={sanitizer}", *options
            ),
            ("ctest", "--test-dir", "{build}", "--output-on-failure", "--no-tests=error"),
        ),
    )


def _built(*options: str) -> tuple[tuple[str, ...], ...]:
    configure = ("cmake", "-S", ".", "-B", "{build}", "-G", "Ninja", f"-DPython_EXECUTABLE={_PYTHON}", *options)
    return configure, ("cmake", "--build", "{build}")


def _soak(ranks: int) -> tuple[str, ...]:
    return (_PYTHON, "-m", "shim", "conformance", "soak", "--operations", "100000", "--ranks", str(ranks))


def _core_on(engine: str) -> Job:
    """The core's tests with their groups served by *engine*, but for those of one host's engine, and of what comes before one is chosen."""
    left_out = ("job", "control", "engines/mpi", "engines/test_emulated_hosts.py", "engines/test_failures.py")
    ignored = (f"--ignore=tests/core/{name}" for name in left_out)
    return Job("shim/core, native/", ((*_PYTEST, "-n", "2", "tests/core", *ignored),), (("SHIM_ENGINE", engine),))


JOBS = {
    "engine": _engine_tests("", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"),  # each file includes what it needs
    "threads": _engine_tests("thread"),
    "faults": Job(
        "how ranks meet, wait or fail",
        (*_built("-DSHIM_FAULT_POINTS=ON"), (*_PYTEST, "tests/fault_matrix")),
        (("SHIM_FAULT_BUILD", "{build}"),),
    ),
    "soak": Job("shim/core, native/", (_soak(2), _soak(3))),
    "first-run": Job(
        "shim/core/engines/nccl, tests/gpu",
        ((_PYTHON, "tests/gpu/first_run.py", "--device", "fake", "--from-tree", "--minutes", "20"),),
    ),
    "torch-suite": Job("shim/core, frontends/torch", ((_PYTHON, "-m", "campaigns.torch_suite"),)),
    "fuzzing": Job("the frontends' signatures, shim/core", ((*_PYTEST, "tests/fuzzing", "--fuzz-seconds", "100"),)),
    "tests": Job("shim/", ((*_PYTEST, "-m", "nightly"),)),
    "installed": Job(  # which the tests otherwise ask not to follow
        "shim/record, frontends/_releases.py",
        ((*_PYTEST, "-n", "2", "tests/frontends", "tests/substitution"),),
        (("SHIM_API", ""),),
    ),
    "gloo": _core_on("c10d"),
    "mpi": _core_on("mpi"),
    "mutants": Job("tests/", ((_PYTHON, "-m", "campaigns.mutants"),)),
    "questions": Job("shim/substitution, a framework's version", ((_PYTHON, "-m", "campaigns.questions", "--own"),)),
    "reference": Job(
        "shim/conformance, a framework's version, a record",
        ((_PYTHON, "-m", "shim", "conformance", "--reference", "--tensors", "all"),),
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Run the jobs that *arguments* name, or all, go on after a failure, print a summary, and return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m checks nightly",
        description=_HELP,
        epilog="\n".join(["jobs, and the changes after which to run them:", *_lines()]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="the jobs to run; default: all")
    names = parser.parse_args(arguments).jobs
    unknown = [name for name in names if name not in JOBS]
    if unknown:
        parser.error(f"no job is called {', '.join(unknown)}; there are {', '.join(JOBS)}")
    summary = []
    for name in names or JOBS:
        begin = time.monotonic()
        status = _run(name, JOBS[name])
        ending = "passed" if status == 0 else f"FAILED with status {status}"
        summary.append(f"{name:12} {ending} after {time.monotonic() - begin:.0f} s")
        print(f"=== {summary[-1]}", flush=True)
    print("\n".join(["", *summary]))
    return int(any("FAILED" in line for line in summary))


def _lines() -> Iterator[str]:
    for name, job in JOBS.items():
        yield f"  {name:12} {job.subject}"


def _run(name: str, job: Job) -> int:
    """Run the commands of *job* until one fails, and return the last one's exit status."""
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix=f"nightly-{name}-") as build:
        for command in job.commands:
            arguments = [argument.replace("{build}", build) for argument in command]
            variables = {key: value.replace("{build}", build) for key, value in job.variables}
            print(f"=== {name}: {' '.join(arguments)}", flush=True)
            status = subprocess.run(arguments, cwd=root, env={**os.environ, **variables}, check=False).returncode
            if status != 0:
                return status
    return 0
