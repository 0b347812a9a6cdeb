"""How the ranks of a group agree on a new one before any of them begins to make it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from zlib import crc32

from shim.core.engines import check_room
from shim.errors import EngineError, MismatchError, ShimError

if TYPE_CHECKING:
    from shim.core.callers import Caller
    from shim.core.groups import ProcessGroup

__all__ = ["agree", "check_members", "has_lost_ranks", "name_after_loss", "refusals_told"]


def check_members(caller: Caller, everyone: ProcessGroup, members: Sequence[int]) -> None:
    """Raise EngineError where this rank of *everyone* is one of *members* and lacks what it needs to make a group with them."""
    try:
        check_room(len(members) if everyone.ranks[everyone.rank] in members else 0)
    except EngineError as error:
        raise caller.explain(error, everyone) from None


def agree(everyone: ProcessGroup, members: Sequence[int], made: int) -> tuple[int, bool]:
    """Compare the *members* of the next group on all ranks of *everyone*, of which they are some.

    Return the highest of the ranks' numbers *made*, and whether all said the same members; several groups at once are as
    good where each of their members says the same. Otherwise raise MismatchError, on all ranks. It is a barrier that
    says so and an all_gather in *everyone*, in the order of its other collectives: a rank that calls another one there, has
    refused its call, or died, ends it on all of them.
    """
    width = 1 + everyone.size  # the number, then the members and nothing
    mine = array("q", [made, *members, *[-1] * (everyone.size - len(members))])
    said = array("q", bytes(8 * width * everyone.size))
    everyone.engine.barrier(True, "a new group")
    everyone.engine.all_gather(said, mine, None, now=True)
    rows = [said[start : start + width] for start in range(0, len(said), width)]
    number = max(row[0] for row in rows)
    if all(row[1:] == mine[1:] for row in rows):
        return number, True
    lists = {rank: [one for one in row[1:] if one >= 0] for rank, row in zip(everyone.ranks, rows, strict=True)}
    if all(lists[member] == theirs for theirs in lists.values() for member in theirs):
        return number, False
    lines = [f"\n  rank {rank}: {theirs}" for rank, theirs in lists.items()]
    raise MismatchError(f"the ranks disagree on {{ranks}} of the new group{''.join(lines)}\nNo group was made.")


def has_lost_ranks(everyone: ProcessGroup) -> bool:
    """Tell whether *everyone* cannot be asked any more, because some of its ranks are gone."""
    engine = everyone.engine
    return not engine.is_usable() and any(engine.has_ended(rank) for rank in range(everyone.size))


def name_after_loss(members: Sequence[int], made: Counter[tuple[int, ...]]) -> str:
    """Return a name for the next group of *members*, of which each of them has *made* as many after the loss, and count it."""
    made[tuple(members)] += 1
    return f"after_loss_{crc32(repr(list(members)).encode()):08x}_{made[tuple(members)]}"


@contextmanager
def refusals_told(everyone: ProcessGroup) -> Iterator[None]:
    """Tell the other ranks of *everyone*, who wait for this one in ``agree``, of what is raised inside."""
    try:
        yield
    except Exception as error:  # the ranks are the user's own, and may raise what they like when they are read
        if everyone.is_alive:
            everyone.engine.refuse(str(error) if isinstance(error, ShimError) else f"{type(error).__name__}: {error}")
        raise
