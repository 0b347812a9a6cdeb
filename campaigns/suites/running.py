"""The tests of a suite, run one way: on gloo, on the engine by SHIM_TORCH_BACKEND=1, or on a frontend."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from campaigns.suites import sources
from campaigns.suites.suite import ENGINE, FRONTEND, GLOO, Selection, Suite

PASSED, SKIPPED = "passed", "skipped"  # any other ending is the message of a failure
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--color=no", "-rf")
_FATAL = 8  # lines of the end of a pytest that wrote no results


@dataclass
class Run:
    """How tests ended, by their pytest ids in the suite, and how many ranks' recordings the engine made in their files."""

    tests: dict[str, str] = field(default_factory=dict)
    recordings: dict[str, int] = field(default_factory=dict)  # by test file
    seconds: float = 0.0


def run(suite: Suite, way: str, python: Path, fetched: Path, only: frozenset[str] | None = None) -> Run:
    """Run *suite*, of which the sources lie in *fetched*, or *only* these tests of it, with the environment of *python*."""
    result = Run()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="suite-") as folder:
        root = Path(folder, "tree")
        sources.copy(suite, fetched, root, suite.replaced + suite.frontend * (way == FRONTEND))
        for tests in suite.tests:
            for name in tests.names if only is None else _again(tests, only):
                trace, junit = Path(folder, "trace"), Path(folder, "junit.xml")
                variables = _variables(tests, way, root, trace, python)
                command = [str(python), *_PYTEST, *tests.options, f"--junit-xml={junit}", name]
                output = _carry_out(command, variables, root / tests.folder, suite.seconds)
                endings = read(junit, tests, name, output)
                for place, told in ((str(root), "TREE"), (str(python.parents[1]), "ENVIRONMENT")):  # they are recorded
                    endings = {test: ending.replace(place, told) for test, ending in endings.items()}
                result.tests |= endings
                file = _path(tests, name.partition("::")[0])
                recorded = len([*trace.iterdir()]) if trace.exists() else 0
                result.recordings[file] = result.recordings.get(file, 0) + recorded
                for left in (junit, *(trace.iterdir() if trace.exists() else ())):
                    left.unlink(missing_ok=True)
    result.seconds = time.monotonic() - begun
    return result


def read(junit: Path, tests: Selection, name: str, output: str) -> dict[str, str]:
    """Return the endings in *junit* by the tests' ids. Where pytest wrote none, *name* ends with the end of *output*."""
    if not junit.exists():
        lines = [line for line in output.splitlines() if line.strip()]
        return {_path(tests, name): "pytest ended without results: " + " / ".join(lines[-_FATAL:])}
    endings = {}
    file = name.partition("::")[0]
    module = file.removesuffix(".py").replace("/", ".")
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        _, _, classes = f".{case.get('classname', '')}".partition(f".{module}")
        parts = [file, *filter(None, classes.split(".")), case.get("name", "")]
        endings[_path(tests, "::".join(parts))] = _ending(case)
    return endings


def _ending(case: ElementTree.Element) -> str:
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            lines = [line.strip() for line in found.get("message", "").splitlines() if line.strip()]
            return " ".join(lines)[:400] or kind
    skipped = case.find("skipped")
    return PASSED if skipped is None else f"{SKIPPED}: {skipped.get('message', '')}"


def _again(tests: Selection, only: frozenset[str]) -> Iterator[str]:
    """Give the tests of *only* that are of *tests*, as pytest takes them in its folder."""
    files = {_path(tests, name.partition("::")[0]) for name in tests.names}
    for test in sorted(only):
        if test.partition("::")[0] in files:
            yield os.path.relpath(test, tests.folder)


def _path(tests: Selection, name: str) -> str:
    return os.path.normpath(f"{tests.folder}/{name}")


def _variables(tests: Selection, way: str, root: Path, trace: Path, python: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHIM_", "PYTHON", "PYTEST"))}
    kept |= {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
    kept |= {"PATH": f"{python.parent}{os.pathsep}{kept['PATH']}", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    kept |= dict(tests.variables)
    if way == GLOO:
        return kept
    return kept | {"SHIM_TRACE": str(trace)} | ({"SHIM_TORCH_BACKEND": "1"} if way == ENGINE else {})


def _carry_out(command: list[str], variables: dict[str, str], folder: Path, limit: float) -> str:
    """Return the output of *command*, which is ended after *limit* seconds. All that it has left running is ended too."""
    ended_late = ""
    with tempfile.TemporaryFile(
        "w+", encoding="utf-8", errors="replace"
    ) as output:  # a pipe would wait for what is left
        process = subprocess.Popen(
            command,
            env=variables,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            ended_late = f"\nno end within {limit:g} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return output.read() + ended_late
