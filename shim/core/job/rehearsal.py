"""A job whose other ranks are not there: ``SHIM_REHEARSE`` says of how many ranks this process is to play one."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.job.job import Job
from shim.core.job.variables import REHEARSED, Variables
from shim.errors import ArgumentError

NEW_GROUP = "making a new group of "  # begins the text of the barrier in which a group's members are recorded


def job_of(rank: int | None, size: int | None, world_size: int, variables: Variables) -> Job:
    """Return this process's place among *world_size* rehearsed ranks; *rank* and *size* are what the program says. Nobody is met."""
    if size not in (None, world_size):
        raise ArgumentError(f"world_size must be {REHEARSED}, {world_size}, got {size}")
    told = variables.get("SHIM_RANK") or variables.get("RANK") or "0"
    number = rank if rank is not None else int(told) if told.isdigit() else 0
    if not 0 <= number < world_size:
        raise ArgumentError(f"rank must be in 0..{world_size - 1}, as {REHEARSED} is {world_size}, got {number}")
    return Job(number, world_size, f"rehearsal of {world_size} ranks", REHEARSED)


def told_members(members: Sequence[int]) -> str:
    """Return how the barrier of a new group names its *members*: "ranks 0-7", "ranks 0-1016:8", or all of them."""
    first, last, step = members[0], members[-1], members[1] - members[0] if len(members) > 1 else 1
    if step > 0 and list(members) == list(range(first, last + 1, step)):
        return (
            f"{NEW_GROUP}{f'rank {first}' if len(members) == 1 else f'ranks {first}-{last}'}{f':{step}' * (step > 1)}"
        )
    return f"{NEW_GROUP}ranks {', '.join(map(str, members))}"
