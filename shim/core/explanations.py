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
    sizes = group.engine.thresholds()
    thresholds = ", ".join(f"{name} {_shown(name, size)}" for name, size in sizes.items())
    return (
        f"{members}: engine {group.engine.name}, as all its ranks are on this host; thresholds in bytes: {thresholds} "
        "(cross to cross_until, swap: where the system lets ranks read each other's memory); "
        f"helper threads: {group.engine.helper_threads()}"
    )


def _shown(name: str, size: int) -> str:
    if size >= NEVER:
        return "any" if name == "cross_until" else "never"
    return str(size)
