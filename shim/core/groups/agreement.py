"""How the ranks of a group agree on a new one before any of them begins to make it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from shim.core.callers import user_place
from shim.core.engines.choosing import check_room
from shim.errors import ArgumentError, EngineError, MismatchError, RankError, ShimError

if TYPE_CHECKING:
    from shim.core.callers import Caller
    from shim.core.groups.process_group import ProcessGroup

NEW_GROUP = "making a new group of "  # begins the text of a rehearsal's barrier, which tells the members
_PLACE_BYTES = 256  # of a rank's file, line and function


def members_of(caller: Caller, ranks: Iterable[int] | None, everyone: ProcessGroup) -> tuple[int, ...]:
    """Return the members of a new group, all of which are ranks of *everyone*."""
    members = everyone.ranks if ranks is None else tuple(ranks)
    try:
        for rank in members:
            if not isinstance(rank, int) or isinstance(rank, bool):
                raise ArgumentError(f"{{ranks}} must be integers, got {rank!r}")
            if rank not in everyone.ranks:
                raise RankError(f"{{ranks}} must be in {_shown(everyone.ranks)}, got {rank}")
        if not members:
            raise ArgumentError("{ranks} must name at least one rank, got an empty list")
        if len(set(members)) != len(members):
            raise ArgumentError(f"{{ranks}} must be different from each other, got {list(members)}")
    except ShimError as error:
        raise caller.explain(error, everyone) from None
    return members


def _shown(ranks: tuple[int, ...]) -> str:
    return f"0..{len(ranks) - 1}" if ranks == tuple(range(len(ranks))) else str(list(ranks))


def check_members(caller: Caller, everyone: ProcessGroup, members: Sequence[int]) -> None:
    """Raise EngineError if this rank of *everyone* is one of *members* and lacks the resources for their group."""
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
    if everyone.is_rehearsed:
        everyone.engine.barrier(True, _told(members))
        return made, True
    width = 1 + everyone.size  # the number, then the members and nothing
    mine = array("q", [made, *members, *[-1] * (everyone.size - len(members))])
    said = array("q", bytes(8 * width * everyone.size))
    everyone.engine.barrier(True, "making a new group with all ranks")
    everyone.engine.all_gather(said, mine, None, now=True)
    rows = [said[start : start + width] for start in range(0, len(said), width)]
    number = max(row[0] for row in rows)
    if all(row[1:] == mine[1:] for row in rows):
        return number, True
    lists = {rank: [one for one in row[1:] if one >= 0] for rank, row in zip(everyone.ranks, rows, strict=True)}
    if all(lists[member] == theirs for theirs in lists.values() for member in theirs):
        return number, False
    places = _places(everyone)
    lines = [
        f"\n  {everyone.label(rank)}: {theirs}{place}{'  <- this rank' * (rank == everyone.rank)}"
        for rank, (theirs, place) in enumerate(zip(lists.values(), places, strict=True))
    ]
    raise MismatchError(f"the ranks disagree on {{ranks}} of the new group{''.join(lines)}\nNo group was made.")


def _places(everyone: ProcessGroup) -> list[str]:
    """Return where each rank of *everyone* has called, all of which call this."""
    mine = user_place().encode()
    if len(mine) > _PLACE_BYTES:  # from a folder of its path on
        end = mine[3 - _PLACE_BYTES :]
        mine = b"..." + end[max(end.find(b"/"), 0) :]
    said = bytearray(_PLACE_BYTES * everyone.size)
    everyone.engine.all_gather(said, bytearray(mine.ljust(_PLACE_BYTES, b"\0")), None, now=True)
    starts = range(0, len(said), _PLACE_BYTES)
    texts = [said[start : start + _PLACE_BYTES].rstrip(b"\0").decode(errors="replace") for start in starts]
    return [f", at {text}" if text else "" for text in texts]


def has_lost_ranks(everyone: ProcessGroup) -> bool:
    """Tell whether *everyone* cannot be asked any more, because some of its ranks are gone."""
    engine = everyone.engine
    return not engine.is_usable() and any(engine.has_ended(rank) for rank in range(everyone.size))


def count_name(members: tuple[int, ...], made: Counter[tuple[int, ...]]) -> str:
    """Return a name for the next group that *members* make alone, and count it in *made*, the groups that each of them has made of just these.

    All of them find the same name, through whichever frontend, if they make their groups of just these ranks in the same order.
    Ask before the call can be refused, since the members that do not refuse it count it.
    """
    made[members] += 1
    return f"ranks_{'_'.join(map(str, members))}#{made[members]}"


def refusals_told(everyone: ProcessGroup) -> AbstractContextManager[None]:
    """Tell the other ranks of *everyone*, who wait for this one in ``agree``, of an error that the block raises."""
    return _RefusalsTold(everyone)


class _RefusalsTold:
    """No generator, as its frame in ``contextlib`` would be taken for the line that the user has called from."""

    def __init__(self, everyone: ProcessGroup) -> None:
        self._everyone = everyone

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        # the ranks are the user's own, and may raise what they like when they are read
        if isinstance(error, Exception) and self._everyone.is_alive:
            told = str(error) if isinstance(error, ShimError) else f"{type(error).__name__}: {error}"
            self._everyone.engine.refuse(told)


def _told(members: Sequence[int]) -> str:
    """Return how the barrier of a new group names its *members*: "ranks 0-7", "ranks 0-1016:8", or all of them."""
    first, last, step = members[0], members[-1], members[1] - members[0] if len(members) > 1 else 1
    if step > 0 and list(members) == list(range(first, last + 1, step)):
        return (
            f"{NEW_GROUP}{f'rank {first}' if len(members) == 1 else f'ranks {first}-{last}'}{f':{step}' * (step > 1)}"
        )
    return f"{NEW_GROUP}ranks {', '.join(map(str, members))}"
