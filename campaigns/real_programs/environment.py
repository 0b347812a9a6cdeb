"""The environment of the programs: a virtual one of its own, with a torch for CPUs, this project, and each program's packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

_ROOT = Path(__file__).resolve().parents[2]
_TORCH = "2.13.0"
_LIMIT = 900.0  # seconds for one installation
_BASE = ("numpy", "typer>=0.20", "rich>=13", "setuptools", "wheel")


class Packages(Protocol):
    """What a program or a suite needs: packages, those without their dependencies, and the one that it is about."""

    @property
    def packages(self) -> tuple[str, ...]: ...
    @property
    def alone(self) -> tuple[str, ...]: ...
    @property
    def library(self) -> str: ...


class InstallError(Exception):
    """A package could not be installed; the text says which, and pip's reason."""


class Environment:
    """The virtual environment in *folder*, which is made at need. What is installed there stays for the next run.

    With *as_it_is*, nothing is installed.
    """

    def __init__(self, folder: Path, *, as_it_is: bool = False, torch: str = _TORCH) -> None:
        self._folder = folder
        self._as_it_is = as_it_is
        self._torch = f"torch=={torch}"
        self._constraints = folder / "constraints.txt"
        self.python = folder / "bin" / "python"

    def prepare(self) -> None:
        """Make it, if there is none, and install torch and this project in it. Raises InstallError."""
        if self._as_it_is:
            return
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self._folder)], check=True)
        self._constraints.write_text(f"{self._torch}\n", encoding="utf-8")  # or a library pulls a torch for CUDA
        self._pip(self._torch, *_BASE)
        self._pip("--no-deps", "--force-reinstall", str(_ROOT))

    def install(self, program: Packages) -> None:
        """Install what *program* needs, where it is not there. Raises InstallError."""
        if self._as_it_is:
            if not self.version_of(program.library):
                raise InstallError(f"{program.library} is not installed in {self._folder}: leave out --installed")
            return
        if program.packages:
            self._pip(*program.packages)
        if program.alone:
            self._pip("--no-deps", *program.alone)

    def version_of(self, package: str) -> str:
        """Return the installed version of *package*."""
        code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
        told = subprocess.run([self.python, "-c", code, package], capture_output=True, text=True, check=False)
        return told.stdout.strip().partition("+")[0]

    def _pip(self, *arguments: str) -> None:
        command = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
        variables = {
            **os.environ,
            "PIP_CONSTRAINT": str(self._constraints),
            "DS_BUILD_OPS": "0",
        }  # DeepSpeed without CUDA
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_LIMIT, env=variables, cwd=self._folder
            )
        except subprocess.TimeoutExpired:
            raise InstallError(f"pip install {' '.join(arguments)}: no end within {_LIMIT:.0f} s") from None
        if ended.returncode != 0:
            errors = [line for line in ended.stderr.splitlines() if "error" in line.lower()] or ["pip failed"]
            raise InstallError(f"pip install {' '.join(arguments)}: {errors[-1].strip()}")
