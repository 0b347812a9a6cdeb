"""No file grows past the length at which it has two jobs."""

from __future__ import annotations

from pathlib import Path

__all__ = ["LIMITS", "check"]

LIMITS = {".py": 400, ".cpp": 300, ".hpp": 300}  # lines
_FOLDERS = ("benchmarks", "checks", "examples", "native", "shim", "tests")


def check(root: Path) -> list[str]:
    """Find the files that are longer than their language's limit."""
    findings = []
    for folder in _FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            limit = LIMITS.get(file.suffix)
            if limit is None:
                continue
            lines = len(file.read_text(encoding="utf-8").splitlines())
            if lines > limit:
                findings.append(f"{file.relative_to(root)}: {lines} lines, at most {limit}: find its two jobs")
    return findings
