"""What ``shim.explain()`` tells of the groups of this process."""

from __future__ import annotations

from shim.core.cross_memory import NEVER
from shim.core.groups import ProcessGroup, all_groups

__all__ = ["of_groups"]


def of_groups() -> list[str]:
    """Tell, in a line for each group of this process, which engine serves it and why."""
    return [_of(group) for group in all_groups()]


def _of(group: ProcessGroup) -> str:
    members = f"group {group.name!r} of ranks {list(group.ranks)}"
    if group.rank < 0:
        return f"{members}: no engine here, as this process is not a member"
    thresholds = ", ".join(f"{name} {_shown(size)}" for name, size in group.engine.thresholds().items())
    return (
        f"{members}: engine {group.engine.name}, as all its ranks are on this host; thresholds in bytes: {thresholds} "
        "(cross, swap: where the system lets ranks read each other's memory); "
        f"helper threads: {group.engine.helper_threads()}"
    )


def _shown(size: int) -> str:
    return "never" if size >= NEVER else str(size)
