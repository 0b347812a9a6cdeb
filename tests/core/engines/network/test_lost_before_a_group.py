"""Who is told to have gone when a group cannot be formed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from shim.core.engines.place import Place
from shim.errors import PeerLostError

OF_RANK_0 = "rank 0's process was killed, and with it the control connections"


def place_of(gone: dict[int, str]) -> Place:
    """Return where world ranks 1 to 3 are to meet, of which some are *gone*; the meeting fails as for ranks without rank 0's process."""

    def exchange(*_: object) -> NoReturn:
        raise PeerLostError(OF_RANK_0)

    control: Any = SimpleNamespace(
        exchange=exchange,
        is_gone=gone.__contains__,
        has_left=lambda rank: "left" in gone[rank],
        ending_of=gone.get,
    )
    return Place("key", "some", (1, 2, 3), 0, 5.0, control=control)


def test_a_member_that_died_comes_before_one_that_left() -> None:
    with pytest.raises(
        PeerLostError, match="rank 3 of the world went before group 'some' was formed: rank 3 died"
    ) as told:
        place_of({2: " left", 3: " died"}).exchange("meet", b"")
    assert told.value.ranks == (2,)


def test_no_member_is_blamed_for_the_end_of_rank_0() -> None:
    with pytest.raises(PeerLostError, match=OF_RANK_0) as told:
        place_of({}).exchange("meet", b"")
    assert told.value.ranks == ()
