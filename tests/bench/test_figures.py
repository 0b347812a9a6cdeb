"""The slowest rank's median, and its spread."""

from __future__ import annotations

import pytest

from shim.bench.planning.cases import Case
from shim.bench.results.record import Overlap, figures_of, slowest


def test_of_each_sample_the_slowest_rank_counts() -> None:
    assert slowest([[1.0, 5.0, 3.0], [2.0, 4.0, 3.5]]) == [2.0, 5.0, 3.5]


def test_ranks_that_disagree_on_the_number_of_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        slowest([[1.0, 2.0], [1.0]])


def test_median_and_quartiles_are_of_all_rounds_together() -> None:
    figures = figures_of([[1e-6, 9e-6], [3e-6], [5e-6, 7e-6]])
    assert (figures.lower_quartile, figures.median, figures.upper_quartile) == pytest.approx((3, 5, 7))
    assert figures.minimum == pytest.approx(1)
    assert figures.samples == 5
    assert figures.rounds == pytest.approx([5, 3, 6])


def test_one_outlier_does_not_move_the_median() -> None:
    assert figures_of([[1e-6] * 9 + [1.0]]).median == pytest.approx(1)


def test_one_sample_is_its_own_quartiles() -> None:
    figures = figures_of([[2e-6]])
    assert (figures.lower_quartile, figures.median, figures.upper_quartile) == pytest.approx((2, 2, 2))


def test_an_overlap_is_compared_with_the_longer_part() -> None:
    assert Overlap(Case("all_reduce", 2, "float32", 8), "x", 16, 10.0, 20.0, 30.0, 1).ratio == 1.5
