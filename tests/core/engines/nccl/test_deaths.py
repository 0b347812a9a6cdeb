"""A rank that dies, or gives up, while the others are in a collective on their devices."""

from __future__ import annotations

from collections.abc import Callable

import dying_rank
import pytest

from shim.launch.pool import RankPool

PROMPT = 10.0  # seconds, for a busy machine; who waits for the other rank's part does so for 30, or for ever


@pytest.mark.parametrize("leaves_at_once", [False, True])
def test_survivors_get_their_stream_back_and_are_told(leaves_at_once: bool) -> None:
    with RankPool(2) as pool:
        survivor, _ = pool.run(dying_rank.lose_a_rank, leaves_at_once, deadline=60.0)
        assert survivor.error is None, survivor.error
        seconds, told = survivor.value
        assert seconds < PROMPT
        assert "rank 1" in told
        assert "was killed by SIGKILL" in told


@pytest.mark.parametrize("how", [dying_rank.lose_a_rank_that_shares, dying_rank.lose_a_rank_while_connecting])
def test_survivors_that_wait_on_the_host_are_told(how: Callable[[], tuple[float, str]]) -> None:
    with RankPool(2) as pool:
        survivor, _ = pool.run(how, deadline=60.0)
        assert survivor.error is None, survivor.error
        seconds, told = survivor.value
        assert seconds < PROMPT
        assert "rank 1" in told
        assert "was killed by SIGKILL" in told


def test_a_rank_that_gives_up_does_not_wait_for_the_others_and_tells_them() -> None:
    with RankPool(2) as pool:
        left, other = pool.run(dying_rank.give_up, deadline=60.0)
        assert (left.error, other.error) == (None, None)
        assert max(left.value[0], other.value[0]) < PROMPT
        assert "KeyError: 'weight'" in other.value[1]
