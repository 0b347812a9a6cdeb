"""A rank that dies, or gives up, while the others are in a collective on their devices."""

from __future__ import annotations

from collections.abc import Callable

import dying_rank
import pytest

from shim.launch.pool import RankPool

PROMPT = 10.0  # seconds, for a busy machine; who waits for the other rank's part does so for 30, or for ever


@pytest.mark.parametrize(
    ("how", "arguments"),
    [
        pytest.param(dying_rank.lose_a_rank, (False,), id="on the stream"),
        pytest.param(dying_rank.lose_a_rank, (True,), id="as it leaves"),
        pytest.param(dying_rank.lose_a_rank_that_shares, (), id="that shares its device"),
        pytest.param(dying_rank.lose_a_rank_while_connecting, (), id="while they connect"),
    ],
)
def test_survivors_are_told_and_get_their_stream_back(
    how: Callable[..., tuple[float, str]], arguments: tuple[bool, ...]
) -> None:
    with RankPool(2) as pool:
        survivor, _ = pool.run(how, *arguments, deadline=60.0)
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
