"""How long turns are, for whatever a call takes."""

from __future__ import annotations

import pytest

from shim.bench.measuring.session import TOO_LONG, Pace, first_turn
from shim.bench.planning.cases import Case

BUDGET = 0.05  # seconds
SMALL, LARGE = (Case("all_gather", 8, "float32", size) for size in (8, 16 << 20))


def test_the_first_turn_is_one_call_and_checked() -> None:
    assert [(turn.calls, turn.check, turn.warm_up) for turn in map(first_turn, (SMALL, LARGE))] == [(1, True, 0)] * 2


@pytest.mark.parametrize(("seconds", "calls"), [(1e-6, 32), (2e-5, 32), (1e-4, 10), (0.004, 1), (1.0, 1)])
def test_a_batch_is_cut_short_where_calls_are_long(seconds: float, calls: int) -> None:
    pace = Pace(SMALL, seconds, BUDGET)
    assert pace.turn().calls == calls
    assert Pace(LARGE, seconds, BUDGET).turn().calls == 1


@pytest.mark.parametrize("case", [SMALL, LARGE])
@pytest.mark.parametrize("seconds", [1e-6, 1e-5, 1e-4, 1e-3, 4e-3, 0.02, 0.04, 0.3, 1.9, 2.1, 30.0])
def test_a_turn_ends_soon(case: Case, seconds: float) -> None:
    pace = Pace(case, seconds, BUDGET)
    turn, second = pace.turn(), pace.second_turn()
    assert (turn.samples + turn.warm_up) * pace.sample <= max(2 * BUDGET, 4 * pace.sample)
    assert turn.samples >= (3 if seconds <= TOO_LONG else 1)
    assert (second is None) == (pace.sample > BUDGET)
    if second is not None:
        assert (second.check + second.warm_up + second.samples) * pace.sample <= 5 * BUDGET
        assert second.check == (second.calls > 1)


def test_mpich_has_six_batches_before_it_counts_where_there_is_time() -> None:
    second = Pace(LARGE, 0.004, BUDGET).second_turn()
    assert second is not None
    assert second.warm_up >= 6


def test_what_a_sample_took_with_everything_is_what_counts() -> None:
    pace = Pace(LARGE, 0.001, BUDGET)
    pace.spent = 0.01
    assert pace.turn().samples == 5
