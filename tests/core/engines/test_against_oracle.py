"""The engine against the oracle: long random sequences of calls in changing groups, every value on every rank."""

from __future__ import annotations

import counting
import numpy as np
import preloaded_programs
import pytest
from core_world import world

from shim.conformance.soak.soak import Era, carry_out
from shim.core import calls
from shim.core.callers import Caller
from shim.launch.pool import RankPool

CALLS = 300
ME = Caller("test")


@pytest.mark.parametrize("size", [1, 2, 3, 4, pytest.param(7, marks=pytest.mark.nightly)])
def test_random_calls_agree_with_the_oracle(size: int) -> None:
    with RankPool(size, original=preloaded_programs.original()) as pool:
        for seed in range(2 if size < 7 else 1):
            for outcome in pool.run(carry_out, Era(seed, 0, CALLS, groups=3, most=2 << 20), deadline=90.0):
                assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"
                assert outcome.value.differences == []
                assert outcome.value.calls > CALLS / 6  # those of the world, one of four groups, at least
                assert (outcome.value.mistakes > 0) == (size > 1)


@pytest.mark.parametrize(("size", "calls"), [(2, 5_000), (3, 2_000)])
def test_small_calls_in_great_number(size: int, calls: int) -> None:
    """The same few bytes of arrival lines, used again and again."""
    with RankPool(size) as pool:
        for outcome in pool.run(counting.count_up, calls, deadline=120.0):
            assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"


def test_a_rank_that_was_refused_twice_may_wait_in_another_group() -> None:
    """It owes the others in the first group the news of the second refusal, without which they wait for it there."""
    with RankPool(2) as pool:
        for outcome in pool.run(counting.be_refused_and_go_elsewhere, deadline=30.0):
            assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"
            assert outcome.value == ["MismatchError", "MismatchError", 3.0]


@pytest.mark.ranks(3, 4)
def test_what_a_rank_still_reads_is_not_overwritten_by_the_next_call(rank: int) -> None:
    """The root has nothing to wait for at the end of a long broadcast, and may begin a short one at once."""
    with world() as group:
        for turn in range(100):
            long, short = np.full(200_000, float(turn)), np.full(10_000, -float(turn))
            if rank != 0:
                long[:], short[:] = 0.5, 0.5
            calls.broadcast(ME, group, long, 0, now=True)
            calls.broadcast(ME, group, short, 0, now=True)
            assert (long == turn).all()
            assert (short == -turn).all()
