"""Which rank is told to have failed first, and how its end is told."""

from __future__ import annotations

import signal
from typing import NamedTuple

import pytest

from shim.launch.endings import first_to_fail, how_it_ended


class Rank(NamedTuple):
    name: str
    status: int | None
    failed_at: float = 1.0
    is_victim: bool = False
    has_raised: bool = True
    was_told_to_end: bool = False


WELL = Rank("well", 0, 0.0, has_raised=False)
CAUSE = Rank("cause", 3, 2.0)
VICTIM = Rank("victim", 1, 1.0, is_victim=True)
SLOW = Rank("slow", -15, 0.5, was_told_to_end=True)
ENDED = Rank("ended", -15, 0.7, has_raised=False, was_told_to_end=True)


@pytest.mark.parametrize(
    ("ranks", "first"),
    [
        ([WELL, WELL], None),
        ([WELL, VICTIM, CAUSE, ENDED], "cause"),
        ([CAUSE, CAUSE._replace(name="earlier", failed_at=1.5)], "earlier"),
        ([VICTIM, SLOW, ENDED], "slow"),
        ([VICTIM, VICTIM._replace(name="later", failed_at=3.0)], "victim"),
        ([WELL, ENDED], "ended"),
    ],
)
def test_the_first_to_fail(ranks: list[Rank], first: str | None) -> None:
    found = first_to_fail(ranks)
    assert (found and found.name) == first


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (3, "ended with status 3"),
        (-signal.SIGKILL, "was killed by SIGKILL"),
        (-signal.SIGRTMIN - 1, f"was killed by signal {signal.SIGRTMIN + 1}"),
    ],
)
def test_how_a_process_ended(status: int, told: str) -> None:
    assert how_it_ended(status) == told
