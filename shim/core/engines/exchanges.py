"""Exchanges among the members of a group that is being made, over the control connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shim.errors import CollectiveTimeoutError, PeerLostError

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.engines.place import Place


def exchange_at(place: Place, step: str, ranks: Sequence[int] | None = None) -> Callable[[bytes], Sequence[bytes]]:
    """Return what gives every member of the group at *place*, or of its world ranks *ranks*, each one's bytes.

    It raises where one of them is gone or late.
    """
    control = place.control
    assert control is not None
    members = place.ranks if ranks is None else ranks

    def exchange(payload: bytes) -> Sequence[bytes]:
        try:
            return control.exchange(f"{step} {place.key}", members, payload, place.timeout)
        except PeerLostError as error:
            raise _lost(place, control, error) from None
        except CollectiveTimeoutError as error:
            raise _late(place, error) from None

    return exchange


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
