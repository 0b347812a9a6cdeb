"""No file and no folder grows past the size at which it has two jobs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

LIMITS = {".py": 400, ".cpp": 300, ".hpp": 300}  # lines
FILES = 24  # of these kinds in a folder, those in folders below it not counted
_FOLDERS = ("benchmarks", "campaigns", "checks", "examples", "native", "shim", "tests", "website")


def check(root: Path) -> list[str]:
    """Find the files that are longer than their language's limit, and the folders with too many of them."""
    findings = []
    counts: Counter[Path] = Counter()
    for folder in _FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            limit = LIMITS.get(file.suffix)
            if limit is None:
                continue
            counts[file.parent] += 1
            lines = len(file.read_text(encoding="utf-8").splitlines())
            if lines > limit:
                findings.append(f"{file.relative_to(root)}: {lines} lines, at most {limit}: find its two jobs")
    return findings + [
        f"{folder.relative_to(root)}: {count} files, at most {FILES}: give its parts folders"
        for folder, count in sorted(counts.items())
        if count > FILES
    ]
