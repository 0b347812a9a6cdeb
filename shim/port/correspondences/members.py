"""What a group tells of itself: a method, a property or a function, as the API has it.

``{group}`` and ``{rank}`` stand for the expressions of the call. A full name is a function of the API; what begins with ``{group}.`` is a member of the group.
"""

from __future__ import annotations

from collections.abc import Mapping

MEMBERS: Mapping[str, tuple[str, ...]] = {
    "size": (
        "torch: {group}.size()",
        "paddle_2: {group}.nranks",
        "paddle_3: {group}.nranks",
        "mindspore: mindspore.mint.distributed.get_world_size({group})",
        "paddle_2: {group}.world_size",
        "paddle_3: {group}.world_size",
    ),
    "rank": (
        "torch: {group}.rank()",
        "paddle_2: {group}.rank",
        "paddle_3: {group}.rank",
        "mindspore: mindspore.mint.distributed.get_rank({group})",
    ),
    "ranks_of": (
        "torch: torch.distributed.get_process_group_ranks({group})",
        "paddle_2: {group}.ranks",
        "paddle_3: {group}.ranks",
        "mindspore: mindspore.mint.distributed.get_process_group_ranks({group})",
    ),
    "rank_in_group": (
        "torch: torch.distributed.get_group_rank({group}, {rank})",
        "paddle_2: {group}.get_group_rank({rank})",
        "paddle_3: {group}.get_group_rank({rank})",
        "mindspore: mindspore.mint.distributed.get_group_rank({group}, {rank})",
    ),
    "rank_in_world": (
        "torch: torch.distributed.get_global_rank({group}, {rank})",
        "paddle_2: {group}.ranks[{rank}]",
        "paddle_3: {group}.get_global_rank({rank})",
        "mindspore: mindspore.mint.distributed.get_global_rank({group}, {rank})",
    ),
}


def member_of(text: str, api: str) -> str | None:
    """Return the row of the member of a group that *api* writes as *text*, such as ``{group}.size()``; None where it has none."""
    return next((row for row, forms in MEMBERS.items() if f"{api}: {text}" in forms), None)


def member_for(row: str, api: str) -> str | None:
    """Return how *api* writes what *row* is; None where it has nothing for it."""
    start = f"{api}: "
    return next((form.removeprefix(start) for form in MEMBERS.get(row, ()) if form.startswith(start)), None)
