"""Try one wheel of ours beside releases of the frameworks: ``python -m checks versions [torch-2.15 ...]``.

Each release gets an environment in build/versions, which is kept: the first time costs its download, 5.5 GB for a torch that is built for CUDA.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from shim.record import recorded_versions
from shim.record.releases import PACKAGES, release_named

_ROOT = Path(__file__).resolve().parent.parent
_ENVIRONMENTS = _ROOT / "build" / "versions"
_OTHERS = {  # that the trials need beside the framework
    "torch": ("numpy",),
    "paddle": ("numpy<2", "setuptools"),
    "mindspore": ("numpy<2",),
}
_OF_TRIALS = ("pytest", "pytest-xdist", "hypothesis", "ml_dtypes", "expecttest", "typer", "rich")
_COPIED = (
    "pyproject.toml",
    "README.md",
    "docs",
    "tests",
    "campaigns",
    "checks",
)  # where no shim/ hides the installed one
_WAYS = ("shim", "SHIM_TORCH_BACKEND=1", "as installed")
_LIMIT = 1800.0  # seconds for one trial


class Trial(NamedTuple):
    """A command that is to end with 0, unless it only ``tells``. What it tells stands in the line that matches ``counts``."""

    name: str
    command: tuple[str, ...]
    counts: str
    tells: bool = False


def main(arguments: Sequence[str]) -> int:
    """Try the releases that *arguments* name, print a table, and return the exit status."""
    parser = argparse.ArgumentParser("python -m checks versions", description=__doc__.partition("\n\n")[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="such as torch-2.15; default: all recorded ones")
    parser.add_argument("--wheel", type=Path, help="the wheel to try; default: one is built")
    parser.add_argument(
        "--suite", action="store_true", help="run PyTorch's own tests of torch.distributed too: 10 minutes"
    )
    given = parser.parse_args(arguments)
    unknown = [text for text in given.releases if release_named(text) is None]
    if unknown:
        print(f"nothing is recorded of {', '.join(unknown)}; there are {', '.join(recorded_versions())}")
        return 2
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = given.wheel or _built(Path(folder))
        print(f"{wheel.name}\n\n| release | trial | result | seconds |\n| --- | --- | --- | --- |", flush=True)
        for release in [release_named(text) for text in given.releases] or recorded_versions():
            failed += _tried(str(release), wheel, suite=given.suite)
    print("\n" + ("\n\n".join(failed) or "all trials passed"))
    return int(bool(failed))


def _tried(release: str, wheel: Path, *, suite: bool) -> Iterator[str]:
    """Try *release*, print a row for each trial, and give what failed."""
    framework = release.partition("-")[0]
    began = time.monotonic()
    try:
        python = _environment(release, wheel)
    except subprocess.CalledProcessError as error:
        print(f"| {release} | environment | **cannot be made** | {time.monotonic() - began:.0f} |", flush=True)
        yield f"{release}: {' '.join(error.cmd)}\n{error.output[-3000:]}"
        return
    print(f"| {release} | environment | made | {time.monotonic() - began:.0f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in _COPIED:
            copy = shutil.copytree if (_ROOT / name).is_dir() else shutil.copy
            copy(_ROOT / name, Path(folder, name))
        for trial in _trials_of(framework, suite=suite):
            began = time.monotonic()
            status, output = _run([str(python), *trial.command], Path(folder))
            told = [line for line in output.splitlines() if re.search(trial.counts, line)][-1:] or ["no counts"]
            has_failed = told == ["no counts"] if trial.tells else status != 0
            result = "**failed**: " * has_failed + told[0].strip(" =")
            print(f"| {release} | {trial.name} | {result} | {time.monotonic() - began:.0f} |", flush=True)
            if has_failed:
                yield f"{release}, {trial.name}: {' '.join(trial.command)}\n{output[-4000:]}"


def _trials_of(framework: str, *, suite: bool) -> Iterator[Trial]:
    ours = ("-m", "shim", "conformance")
    yield Trial("signatures", (*ours, "signatures"), r"recorded, \d+ present and equal")
    yield Trial("tables", (*ours, "tables", "--tensors", f"numpy,{framework}"), r"\d+ calls checked")
    # Of most releases it is not recorded which of their examples are wrong.
    yield Trial("documents", (*ours, "run", "--framework", framework, "--tensors", framework), r"\d+ pass", tells=True)
    if framework == "torch":
        pytest = (
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-o",
            "ranks_preload=torch",
            "-m",
            "nightly or not nightly",
        )
        for way in _WAYS:
            test = f"tests/frontends/torch/backend/test_parallel_features.py::test_every_feature[{way}]"
            yield Trial(way, (*pytest, test), r"\d+ (passed|failed|error)")
        of_releases = (f"tests/frontends/torch/backend/test_{name}.py" for name in ("hooks", "newer_functions"))
        yield Trial("hooks and newer functions", (*pytest, *of_releases), r"\d+ (passed|failed|error)")
        if suite:
            yield Trial("PyTorch's suite on gloo", ("-m", "campaigns.torch_suite", "--record"), r"\d+")
            yield Trial("PyTorch's suite", ("-m", "campaigns.torch_suite"), r"\d+ of \d+")


def _environment(release: str, wheel: Path) -> Path:
    """Return the Python of the environment of *release* with *wheel* in it. Raises CalledProcessError."""
    framework, _, version = release.partition("-")
    folder = _ENVIRONMENTS / release
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--no-cache-dir"]
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _checked([sys.executable, "-m", "venv", str(folder)])
        _checked([*pip, f"{PACKAGES[framework][0]}=={version}", *_OTHERS[framework], *_OF_TRIALS])
        (folder / "complete").touch()
    _checked([*pip, "--no-deps", "--force-reinstall", str(wheel)])
    return python


def _built(folder: Path) -> Path:
    _checked([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(_ROOT)])
    return next(folder.glob("*.whl"))


def _checked(command: list[str]) -> None:
    # Without this machine's limits on what pip may install: the release is asked for by its number.
    environment = {**os.environ, "PIP_CONSTRAINT": os.devnull}
    subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    """Return the exit status and the output of *command* in *folder*."""
    environment = {**os.environ, "SHIM_API": ""}  # the release that is installed is to be followed
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            output, _ = program.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)  # with the ranks that it has started
            return 124, f"{program.communicate()[0]}\nno end within {_LIMIT:.0f} s"
    return program.returncode, output
