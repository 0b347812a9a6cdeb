"""How the ranks of a group across hosts come together: each host's in memory that they share, and the hosts' leaders by wires."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shim._native import CarriedGroup, Wire
from shim.core.control.wires import wires_of
from shim.core.engines.network.layout import Layout
from shim.core.engines.network.lazy_link import LazyLink
from shim.core.engines.network.link import Link, LinkError
from shim.errors import EngineError, ShimError, StateError

if TYPE_CHECKING:
    from shim.core.engines.network.carrier import Carrier
    from shim.core.engines.place import Place


def met(
    place: Place,
    layout: Layout,
    carrier: Carrier,
    connect: Callable[[tuple[int, ...]], Link],
) -> tuple[CarriedGroup, Link]:
    """Return the native group at *place*, and the link that *connect* makes, once all members have met. That of gloo is made when it is needed.

    Raises StateError on all of them where they chose different engines, and EngineError where one cannot join or connect.
    """
    assert place.choice is not None
    assert place.control is not None
    is_awaited = layout.is_leader and layout.hosts > 1
    said = [str(place.choice), wires_of(place.control).address() if is_awaited else "", secrets.randbits(64)]
    words = [json.loads(word) for word in place.exchange("meet", json.dumps(said).encode())]
    _check_choices(place, [choice for choice, _, _ in words])
    group: CarriedGroup | None = None
    link: Link | None = None
    problem = ""
    try:
        group = CarriedGroup(
            place.key,
            place.name,
            list(place.ranks),
            place.rank,
            place.timeout,
            (place.choice.name, place.choice.reason),
            carrier,
            layout.members,
            _wires(place, layout, [address for _, address, _ in words]),
            words[0][2],
            carrier.pids_here(),
        )
        link = LazyLink(place, "gloo", connect) if place.choice.library == "gloo" else connect(place.ranks)
    except Exception as error:  # whatever it is, the others wait for this rank
        problem = str(error) if isinstance(error, (LinkError, ShimError)) else f"{type(error).__name__}: {error}"
    try:
        problems = [word.decode() for word in place.exchange("join", problem.encode())]
        first = next((rank for rank, word in enumerate(problems) if word), None)
        if first is not None:
            raise EngineError(
                f"group {place.name!r} could not be connected: rank {place.ranks[first]}: {problems[first]}"
            )
    except BaseException:
        if link is not None:
            link.close(False)
        if group is not None:
            group.close()
        raise
    assert group is not None
    assert link is not None
    return group, link


def key_among(place: Place, ranks: tuple[int, ...]) -> str:
    """Return the key for connections between some world *ranks* of the group at *place*: its own where they are all members."""
    return place.key if ranks == place.ranks else f"{place.key} among {', '.join(map(str, ranks))}"


def _wires(place: Place, layout: Layout, addresses: Sequence[str]) -> list[Wire]:
    """Return the connections to the leaders of the other hosts, who listen at some of *addresses*, which are by group rank; none where this rank does not lead."""
    assert place.control is not None
    leaders = [members[0] for members in layout.members if members is not layout.here]
    return [
        wires_of(place.control).to(place.ranks[leader], addresses[leader], place.timeout)
        for leader in (leaders if layout.is_leader else ())
    ]


def _check_choices(place: Place, choices: Sequence[str]) -> None:
    if len(set(choices)) == 1:
        return
    lines = "".join(f"\n  rank {rank}: {choice}" for rank, choice in zip(place.ranks, choices, strict=True))
    raise StateError(
        f"the ranks chose different engines for group {place.name!r}:{lines}\n"
        f"Set SHIM_ENGINE and SHIM_ACROSS to the same values on all ranks."
    )
