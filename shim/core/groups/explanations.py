"""What ``shim.explain()`` tells of the groups of this process."""

from __future__ import annotations

from shim.core.groups import ProcessGroup, all_groups


def of_groups() -> list[str]:
    """Tell, in a line for each group of this process, which engine serves it and why, and which of its ranks are lost."""
    return [_of(group) for group in all_groups()]


def _of(group: ProcessGroup) -> str:
    members = f"group {group.name!r} of ranks {list(group.ranks)}"
    if group.rank < 0:
        return f"{members}: no engine here, as this process is not a member"
    if group.choice is None or not group.is_alive:
        return f"{members}: no engine any more"
    figures = group.engine.figures()
    devices = "".join(f"; for tensors on {kind}: {one}" for kind, one in group.engines_of_devices().items())
    return f"{members}: engine {group.choice}, as {group.choice.reason}{'; ' * bool(figures)}{figures}{devices}{_losses(group)}"


def _losses(group: ProcessGroup) -> str:
    endings = {rank: ending for rank in range(group.size) if (ending := group.engine.ending_of(rank))}
    left = [ending for rank, ending in endings.items() if group.engine.has_left(rank)]
    lost = [ending for rank, ending in endings.items() if not group.engine.has_left(rank)]
    what = "".join(f"; {ending}" for ending in left) + (f"; lost: {', '.join(lost)}" if lost else "")
    return what if group.engine.is_usable() else f"{what}; this group can no longer be used"
