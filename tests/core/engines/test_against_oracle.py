"""The engine against the oracle: long random sequences of calls, every value on every rank."""

from __future__ import annotations

import pytest
import random_calls

from shim.launch.pool import RankPool


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_random_calls_agree_with_the_oracle(size: int) -> None:
    with RankPool(size) as pool:
        for seed in range(3):
            for outcome in pool.run(random_calls.run, seed, 150, deadline=60.0):
                assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"
                assert outcome.value > 30


@pytest.mark.parametrize("size", [2, 3, 4])
def test_random_calls_on_shared_memory_agree_with_the_oracle(size: int) -> None:
    with RankPool(size) as pool:
        for outcome in pool.run(random_calls.run, 7, 150, True, deadline=60.0):
            assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"
            assert outcome.value > 30


@pytest.mark.parametrize("size", [2, 3])
def test_small_calls_in_great_number(size: int) -> None:
    """The same few bytes of arrival lines, used again and again."""
    with RankPool(size) as pool:
        for outcome in pool.run(random_calls.count_up, 20_000, deadline=60.0):
            assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"


def test_the_comparison_notices_one_element() -> None:
    import numpy as np

    right = np.arange(5.0)
    wrong = right.copy()
    wrong[3] += 1
    random_calls.assert_same_bits("right", right, right.copy())
    with pytest.raises(AssertionError, match="at 3 of 5"):
        random_calls.assert_same_bits("wrong", wrong, right)
