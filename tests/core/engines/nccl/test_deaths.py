"""A rank that dies while the others are in a collective on their devices."""

from __future__ import annotations

import dying_rank

from shim.launch.pool import RankPool


def test_survivors_get_their_stream_back_and_are_told() -> None:
    with RankPool(2) as pool:
        survivor, _ = pool.run(dying_rank.lose_a_rank, deadline=60.0)
        assert survivor.error is None, survivor.error
        seconds, told = survivor.value
        assert seconds < 2.0
        assert "rank 1" in told
        assert "was killed by SIGKILL" in told
