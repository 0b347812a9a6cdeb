"""One program, started one way: on gloo, or on the engine by the variable or by ``shim run --as-installed``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaigns.real_programs.program import Program

GLOO, ENGINE, AS_INSTALLED = "gloo", "engine", "as installed"
WAYS = (GLOO, ENGINE, AS_INSTALLED)
RANKS = 2

_PREAMBLE = Path(__file__).parent / "preamble"
_PREFIX = re.compile(r"^\[(?:rank)?\d+\]:? ")  # before a rank's line: torch's, and that of `shim run`
_MODULES = {
    GLOO: ("torch.distributed.run", "--standalone", "--nproc-per-node"),
    ENGINE: ("torch.distributed.run", "--standalone", "--nproc-per-node"),
    AS_INSTALLED: ("shim", "run", "--as-installed", "-n"),
}


@dataclass
class Run:
    """How a program ended. ``results`` has what each rank showed, ``groups`` the classes of its process groups."""

    ending: str  # "ok", or why it did not end well
    seconds: float
    results: list[list[dict[str, Any]]] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)
    output: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether all ranks ended well, and showed something."""
        return self.ending == "ok"


def run(program: Program, way: str, python: Path) -> Run:
    """Run *program* on two ranks, in the environment of *python*, and return how it ended."""
    command = [str(python), "-m", *_MODULES[way], str(RANKS), str(program.path)]
    with tempfile.TemporaryDirectory(prefix="real-program-") as folder:
        variables = variables_of(Path(folder))
        if way == ENGINE:
            variables["SHIM_TORCH_BACKEND"] = "1"
        begun = time.monotonic()
        status, output = _carry_out(command, variables, Path(folder), program.seconds)
        seconds = time.monotonic() - begun
        output = output.replace(folder, "FOLDER").replace(str(python.parents[1]), "ENVIRONMENT")  # endings are recorded
        kept = [_read(Path(folder, f"rank{rank}")) for rank in range(RANKS)]
    results = [[entry for entry in of_rank if "name" in entry] for of_rank in kept]
    groups = [sorted({entry["group"] for entry in of_rank if "group" in entry}) for of_rank in kept]
    return Run(_ending(status, output, results, program.seconds), seconds, results, groups, output)


def variables_of(folder: Path) -> dict[str, str]:
    """Return the environment of a run whose ranks leave their results in *folder*."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("SHIM_", "PYTHON"))}
    variables |= {"PYTHONPATH": str(_PREAMBLE), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    variables |= {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    return variables | {"REAL_PROGRAMS_RESULTS": str(folder)}


def _carry_out(command: list[str], variables: dict[str, str], folder: Path, limit: float) -> tuple[int | None, str]:
    """Return the exit status, None after *limit* seconds, and all output."""
    with subprocess.Popen(
        command,
        env=variables,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                output, _ = process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
            return None, output
    return process.returncode, output


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _ending(status: int | None, output: str, results: list[list[dict[str, Any]]], limit: float) -> str:
    if status is None:
        return f"no end within {limit:.0f} s"
    if status != 0:
        return _last_error(output) or f"exit status {status}"
    return "ok" if all(results) else "ended without a result on every rank"


def _last_error(output: str) -> str:
    """Return the last line of the first traceback in *output*: the ranks' own, not the launcher's."""
    in_traceback = False
    for line in output.splitlines():
        text = _PREFIX.sub("", line)
        if "Traceback (most recent call last)" in text:
            in_traceback = True
        elif in_traceback and text.strip() and not text.startswith((" ", "\t")):
            return text.strip()[:300]
    return ""
