"""How the members of a group connect over a library: all of them, or none, and each learns why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from shim.core.engines.exchanges import exchange_at
from shim.core.engines.network.link import Link, LinkError
from shim.errors import EngineError, ShimError, StateError

if TYPE_CHECKING:
    from shim.core.engines.place import Place

_Link = TypeVar("_Link", bound=Link)


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


def _check_choices(place: Place, choices: Sequence[bytes]) -> None:
    said = [choice.decode() for choice in choices]
    if len(set(said)) == 1:
        return
    lines = "".join(f"\n  rank {rank}: {choice}" for rank, choice in zip(place.ranks, said, strict=True))
    raise StateError(
        f"the ranks chose different engines for group {place.name!r}:{lines}\n"
        f"Set SHIM_ENGINE and SHIM_ACROSS to the same values on all ranks."
    )
