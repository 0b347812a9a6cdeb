"""The checks other projects' tools make. A tool that is not installed is a finding, never a skip."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

__all__ = ["clang_format", "import_linter", "mypy", "ruff_check", "ruff_format"]


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
    """Find the imports that break a contract in pyproject.toml."""
    return _findings(root, "lint-imports", "--no-logo")


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
    """Run *tool* of this environment in *root*; what it prints are the findings, when it fails."""
    executable = _find(tool)
    if executable is None:
        return [f"{tool} is not installed here: python3 -m pip install -e '.[test]'"]
    ended = subprocess.run(
        [executable, *arguments], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if ended.returncode == 0:
        return []
    printed = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    return printed or [f"{tool} ended with status {ended.returncode} and said nothing"]


def _find(tool: str) -> str | None:
    """Prefer the environment's own tool to another one on the path, whose version nobody chose."""
    return shutil.which(tool, path=sysconfig.get_path("scripts")) or shutil.which(tool)
