"""How the members of a group connect over a library: all of them, or none, and each learns why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from shim.core.engines.network.link import Link, LinkError
from shim.errors import CollectiveTimeoutError, EngineError, PeerLostError, ShimError, StateError

if TYPE_CHECKING:
    from shim.core.control import Control
    from shim.core.engines.place import Place

__all__ = ["connected", "exchange_at"]

_Link = TypeVar("_Link", bound=Link)


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


def connected(place: Place, connect: Callable[[], _Link]) -> _Link:
    """Return the link that *connect* makes, once all members of the group at *place* have met and made theirs.

    Raises StateError on all of them where they chose different engines, and EngineError where one cannot connect.
    """
    _check_choices(place, exchange_at(place, "meet")(str(place.choice).encode()))
    link, problem = None, ""
    try:
        link = connect()
    except Exception as error:  # whatever it is, the others wait for this rank
        problem = str(error) if isinstance(error, (LinkError, ShimError)) else f"{type(error).__name__}: {error}"
    try:
        problems = [said.decode() for said in exchange_at(place, "connect")(problem.encode())]
        first = next((rank for rank, said in enumerate(problems) if said), None)
        if first is not None:
            raise EngineError(
                f"group {place.name!r} could not be connected: rank {place.ranks[first]}: {problems[first]}"
            )
    except BaseException:
        if link is not None:
            link.close(False)
        raise
    assert link is not None
    return link


def _lost(place: Place, control: Control, error: PeerLostError) -> PeerLostError:
    """Return the error of a member that went before the group was there: the one that died, before those that left, perhaps for that."""
    gone = [member for member in place.ranks if control.is_gone(member)] or [place.ranks[0]]
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


def _check_choices(place: Place, choices: Sequence[bytes]) -> None:
    said = [choice.decode() for choice in choices]
    if len(set(said)) == 1:
        return
    lines = "".join(f"\n  rank {rank}: {choice}" for rank, choice in zip(place.ranks, said, strict=True))
    raise StateError(
        f"the ranks chose different engines for group {place.name!r}:{lines}\n"
        f"Set SHIM_ENGINE and SHIM_ACROSS to the same values on all ranks."
    )
