"""The processes that a process has started."""

from __future__ import annotations

from pathlib import Path


def children() -> set[int]:
    """Return the processes this one has started and that have not been waited for."""
    while True:
        try:
            tasks = Path("/proc/self/task").iterdir()
            return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread has ended meanwhile, whose children another one gets
