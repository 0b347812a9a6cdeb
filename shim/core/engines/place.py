"""Where a group's ranks meet, for which engine, and what they tell each other there before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shim.core.job.origin import NO_ORIGIN, Origin
from shim.errors import CollectiveTimeoutError, PeerLostError

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.engines.base import Engine


REHEARSAL = "rehearsal"
OVER_NETWORKS = {"c10d": "gloo", "mpi": "mpi", "hierarchical": ""}  # and the library that carries data between hosts


@dataclass(frozen=True)
class Choice:
    """The engine of a group: its *name*, and the *reason* as it follows "as".

    ``library`` carries its data between hosts, where it can: gloo or mpi. ``is_said`` tells whether the user has chosen it.
    """

    name: str
    reason: str
    library: str = ""
    is_said: bool = field(default=False, compare=False)

    @property
    def is_over_network(self) -> bool:
        """Whether the ranks need control connections."""
        return self.name in OVER_NETWORKS

    @property
    def is_rehearsal(self) -> bool:
        """Whether the other ranks are not there."""
        return self.name == REHEARSAL

    def __str__(self) -> str:
        return self.name + (f" over {self.library}" if self.name == "hierarchical" else "")


@dataclass(frozen=True)
class Place:
    """One rank's seat in a group that is about to be formed.

    ``key`` is a string that all ranks of this group know; others of the host may know it where ``origin`` tells the ranks apart; ``ranks`` are the world
    ranks of the members, ``rank`` the caller's group rank; ``timeout`` is in seconds, for meeting and for every operation.
    ``world`` is the engine of the world that the group is part of, which knows when one of the ranks has gone. ``choice`` says
    which engine was chosen, on which all ranks have to agree, and why.
    ``control`` are the control connections of the world, for engines over a network, and ``hosts`` the numbers of the members' hosts; the engine that ``owns_control`` closes them.
    """

    key: str
    name: str
    ranks: tuple[int, ...]
    rank: int
    timeout: float
    world: Engine | None = None
    origin: Origin = NO_ORIGIN
    choice: Choice | None = None
    control: Control | None = None
    hosts: tuple[int, ...] = ()
    owns_control: bool = False

    def exchange(self, step: str, payload: bytes, ranks: Sequence[int] | None = None) -> Sequence[bytes]:
        """Return each member's *payload* for *step*, over the control connections, or that of each of the world ranks *ranks*.

        Raises PeerLostError where one of them is gone, and CollectiveTimeoutError where one is late.
        """
        assert self.control is not None
        members = self.ranks if ranks is None else ranks
        try:
            return self.control.exchange(f"{step} {self.key}", members, payload, self.timeout)
        except PeerLostError as error:
            raise _lost(self, self.control, error) from None
        except CollectiveTimeoutError as error:
            raise _late(self, error) from None


def _lost(place: Place, control: Control, error: PeerLostError) -> PeerLostError:
    """Return the error of a member that went before the group was there: the one that died, before those that left, perhaps for that.

    It is *error* itself where that tells of no member, but of rank 0's process, without which the ranks do not hear of each other.
    """
    gone = [member for member in place.ranks if control.is_gone(member)]
    if not gone:
        error.ranks = ()
        return error
    first = min(gone, key=control.has_left)
    name = f"rank {first}"
    told = f"{name} of the world went before group {place.name!r} was formed: {name}{control.ending_of(first)}"
    lost = PeerLostError(told)
    lost.ranks = (place.ranks.index(first),)
    return lost


def _late(place: Place, error: CollectiveTimeoutError) -> CollectiveTimeoutError:
    ranks = ", ".join(str(rank) for rank in error.ranks)
    late = CollectiveTimeoutError(
        f"making group {place.name!r} took longer than {place.timeout:g} s; had not come: {ranks}"
    )
    late.ranks = tuple(place.ranks.index(rank) for rank in error.ranks if rank in place.ranks)
    return late
