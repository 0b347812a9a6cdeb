"""Ranks that die, leave, never come, are interrupted or fork: the others know it soon, and nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import failing_ranks
import pytest

from shim.launch.pool import RankPool


@pytest.fixture(scope="module")
def three() -> Iterator[RankPool]:
    with RankPool(3) as pool:
        yield pool


def values(
    pool: RankPool, function: Callable[..., Any], *arguments: object, ranks: tuple[int, ...] = (0, 1, 2)
) -> list[Any]:
    """Run a function of failing_ranks and return the values of *ranks*, which must not have failed."""
    outcomes = pool.run(function, *arguments, deadline=30.0)
    for rank in ranks:
        assert outcomes[rank].error is None, outcomes[rank].error
    return [outcomes[rank].value for rank in ranks]


ENDINGS = {
    "kill": "was killed by SIGKILL",
    "exit": "exited with status 3",
    "leave": "left the group",
    "kill with a forked helper": "was killed by SIGKILL",
}


@pytest.mark.parametrize("way", ["now", "waited", "started"])
@pytest.mark.parametrize(
    ("count", "is_shared"), [(1, False), (300_000, False), (300_000, True)], ids=["small", "large", "shared"]
)
@pytest.mark.parametrize("how", ENDINGS)
def test_survivors_are_told_within_a_second(
    three: RankPool, how: str, count: int, is_shared: bool, way: str, tmp_path: Path
) -> None:
    note = tmp_path / "when"
    for seen in values(three, failing_ranks.lose_a_rank, how, count, is_shared, way, note, ranks=(0, 2)):
        assert isinstance(seen, failing_ranks.Caught)
        assert seen.error == "PeerLostError"
        assert seen.ranks == (failing_ranks.VICTIM,)
        assert ENDINGS[how] in seen.message
        assert seen.again == "PeerLostError"
        assert seen.again_after < 0.1
        assert seen.at - float(note.read_text()) < 1.0


def test_a_death_is_told_in_every_group_within_a_second(three: RankPool, tmp_path: Path) -> None:
    note = tmp_path / "when"
    for seen in values(three, failing_ranks.lose_a_rank_of_many_groups, 30, note, ranks=(0, 2)):
        assert len(seen) == 31
        for one in seen:
            assert (one.error, one.ranks) == ("PeerLostError", (failing_ranks.VICTIM,))
            assert ENDINGS["kill"] in one.message
            assert one.at - float(note.read_text()) < 1.0


@pytest.mark.parametrize("operation", ["now", "waited", "started", "receive"])
def test_an_absent_rank_is_named_after_the_timeout(three: RankPool, operation: str) -> None:
    for seen in values(three, failing_ranks.wait_for_an_absent_rank, operation, ranks=(0, 2)):
        assert isinstance(seen, failing_ranks.Caught)
        assert seen.error == seen.again == "CollectiveTimeoutError"
        assert seen.ranks == (failing_ranks.VICTIM,)
        assert " 5 s" in seen.message


def test_a_rank_that_never_comes_is_named(three: RankPool) -> None:
    for error, message, seconds in values(three, failing_ranks.never_come, ranks=(0, 2)):
        assert error == "CollectiveTimeoutError"
        assert "had not come: 1" in message or "rank 1 has not come" in message
        assert seconds < 10


@pytest.mark.parametrize("way", ["now", "waited"])
def test_ctrl_c_ends_a_wait(three: RankPool, way: str) -> None:
    interrupted, then = values(three, failing_ranks.interrupt_a_wait, way)[0]
    assert interrupted
    assert "interrupted" in then
    assert "The group can no longer be used." in then
    three.close()


def test_a_forked_child_is_refused_and_harmless(three: RankPool) -> None:
    for told, total in values(three, failing_ranks.use_after_fork):
        assert told.startswith("StateError")
        assert "fork" in told
        assert total == [6.0, 6.0]


def test_a_forked_child_cannot_wait_for_its_parents_work(three: RankPool) -> None:
    for told, total in values(three, failing_ranks.wait_in_a_forked_child, ranks=(1, 2)):
        assert told == "StateError, let go"
        assert total == 3.0


def test_entering_and_leaving_holds_nothing(three: RankPool) -> None:
    shared_memory = sorted(os.listdir("/dev/shm"))
    for before, after in values(three, failing_ranks.enter_and_leave, 30):
        assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
    assert sorted(os.listdir("/dev/shm")) == shared_memory


def test_the_engine_makes_no_file(three: RankPool, tmp_path: Path) -> None:
    with RankPool(2, {"TMPDIR": str(tmp_path)}) as pool:
        values(pool, failing_ranks.enter_and_leave, 1, ranks=(0, 1))
    assert list(tmp_path.iterdir()) == []
