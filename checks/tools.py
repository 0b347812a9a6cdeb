"""The checks other projects' tools make. A tool that is not installed is a finding, never a skip."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def ruff_check(root: Path) -> list[str]:
    """Find what ruff's rules in pyproject.toml find."""
    return _findings(root, "ruff", "check", "--quiet", "--output-format=concise", ".")


def ruff_format(root: Path) -> list[str]:
    """Find the Python files that ``ruff format`` would change."""
    return _findings(root, "ruff", "format", "--check", "--quiet", "--output-format=concise", ".")


def mypy(root: Path) -> list[str]:
    """Find what mypy finds in ``shim/``, strictly."""
    return _findings(root, "mypy", "--no-error-summary")


def import_linter(root: Path) -> list[str]:
    """Find the imports that break a contract in pyproject.toml.

    It looks for the package as Python does, so the hooks of an editable install, which would find another tree, stay out.
    """
    if importlib.util.find_spec("importlinter") is None:
        return [_missing("import-linter")]
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    paths = [str(root), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return _printed(root, [sys.executable, "-S", "-c", program, "--no-logo"], environment)


def clang_format(root: Path) -> list[str]:
    """Find the C++ files that clang-format would change."""
    files = sorted(
        str(file.relative_to(root)) for file in (root / "native").rglob("*") if file.suffix in (".cpp", ".hpp")
    )
    if not files:
        return ["native: has no C++ file to check"]
    return [
        f"{file}: clang-format -i {file}"
        for file in files
        if _findings(root, "clang-format", "--dry-run", "--Werror", file)
    ]


def _findings(root: Path, tool: str, *arguments: str) -> list[str]:
    executable = _find(tool)
    return [_missing(tool)] if executable is None else _printed(root, [executable, *arguments])


def _missing(tool: str) -> str:
    return f"{tool} is not installed here: python3 -m pip install -e '.[test]'"


def _find(tool: str) -> str | None:
    """Prefer the environment's own tool to another one on the path, whose version nobody chose."""
    return shutil.which(tool, path=sysconfig.get_path("scripts")) or shutil.which(tool)


def _printed(root: Path, command: list[str], environment: dict[str, str] | None = None) -> list[str]:
    """Run *command* in *root*; what it prints are the findings, when it fails."""
    ended = subprocess.run(
        command, cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if ended.returncode == 0:
        return []
    printed = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    return printed or [f"{Path(command[0]).name} ended with status {ended.returncode} and said nothing"]
