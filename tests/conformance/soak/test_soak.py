"""The soak itself: it finds what is wrong, says where, and finds nothing otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from shim.cli.conformance import conformance
from shim.conformance.soak import operations, shared_tensors, soak
from shim.conformance.soak.draw import KINDS, WAYS, Draw, elements, kinds, place
from shim.conformance.soak.soak import Era, Found, Plan, Summary, difference, grown
from shim.conformance.soak.soak import run as eras_of


def run(plan: Plan) -> Summary:
    *_, summary = eras_of(plan)
    return summary


@pytest.mark.nightly
def test_a_few_thousand_operations_show_no_difference() -> None:
    summary = run(Plan(3000, 3, seed=20, most=4 << 20))
    assert summary.differences == []
    assert (summary.operations, len(summary.memory)) == (3000, 6)
    assert summary.mistakes > 30
    assert summary.groups == 24
    assert summary.bytes > 1e8


def test_the_same_seed_makes_the_same_calls() -> None:
    one, other = (run(Plan(200, 2, seed=3, most=1 << 16)) for _ in range(2))
    assert (one.calls, one.bytes, one.mistakes) == (other.calls, other.bytes, other.mistakes)


def test_the_command_says_what_it_did() -> None:
    result = CliRunner().invoke(
        conformance, ["soak", "--operations", "100", "--ranks", "2", "--seed", "7", "--largest", "1"]
    )
    assert result.exit_code == 0, result.output
    assert "seed 7" in result.output
    assert "0 differences" in result.output


def corrupt_one_element(era: Era) -> Found:
    """Carry *era* out with an all_gather that gets a bit wrong; in rank processes."""
    original = operations.OPERATIONS[4]

    def wrong(*arguments):  # type: ignore[no-untyped-def]
        made = original(*arguments)
        for work in made.works:
            work.wait()
        placed = made.outcomes[-1][0]
        if placed.tensor.size > 2:
            placed.memory[placed.memory.size // 2] ^= 1
        return made

    wrong.__name__ = original.__name__
    soak.OPERATIONS, soak.ON_SHARED_TENSORS = (wrong,), ()
    return soak.carry_out(era)


def test_a_single_wrong_bit_is_told_with_seed_and_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shim.conformance.soak.soak.carry_out", corrupt_one_element)
    summary = run(Plan(40, 2, seed=4, most=1 << 12))
    assert not summary.passed
    assert any("seed 4 call " in told and "all_gather of" in told for told in summary.differences)


def take_gradients_of_what_was_overwritten(era: Era) -> Found:
    """Carry *era* out as if no framework heard of what is written; in rank processes."""
    original = shared_tensors.ON_SHARED_TENSORS[-1]

    def silent(*arguments):  # type: ignore[no-untyped-def]
        made = original(*arguments)
        made.checks[:] = [lambda: "a gradient was taken"]
        return made

    silent.__name__ = original.__name__
    soak.OPERATIONS, soak.ON_SHARED_TENSORS = (), (silent,)
    return soak.carry_out(era)


def test_a_gradient_of_what_was_overwritten_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shim.conformance.soak.soak.carry_out", take_gradients_of_what_was_overwritten)
    summary = run(Plan(10, 2, seed=4, most=1 << 12))
    assert any("kept_for_a_gradient of" in told and "a gradient was taken" in told for told in summary.differences)


def write_by_mistake(era: Era) -> Found:
    """Carry *era* out with a mistake that writes before it is refused; in rank processes."""

    def wrong(group, tensor, is_mine, now):  # type: ignore[no-untyped-def]
        tensor[-1] += 1
        return original(group, tensor, is_mine, now)

    original = operations.MISTAKES[0]
    wrong.__name__ = original.__name__
    operations.MISTAKES = (wrong,)
    return soak.carry_out(era)


def test_a_refused_call_that_writes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shim.conformance.soak.soak.carry_out", write_by_mistake)
    summary = run(Plan(500, 2, seed=4, most=1 << 12))
    assert any("other_shape by rank" in told and "an output was written" in told for told in summary.differences)


def test_a_rank_that_raises_ends_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shim.conformance.soak.soak.carry_out", "test_soak:raise_on_rank_1")
    summary = run(Plan(40, 2, seed=4))
    assert not summary.passed
    assert "calls 0 to 39" in summary.differences[0]


def raise_on_rank_1(era: Era) -> Found:
    raise RuntimeError("on purpose")


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_a_difference_of_one_bit_is_noticed(kind) -> None:
    right = elements(kind, 11, 9, special=False)
    wrong = right.copy()
    assert difference(wrong, right) == ""
    wrong.view(np.uint8)[4 * right.itemsize] ^= 1
    assert "at " in difference(wrong, right)


def test_nan_is_as_good_as_any_other_and_zeros_have_signs() -> None:
    quiet = np.array([np.nan, 0.0])
    other = np.array([np.nan, 0.0])
    other.view(np.uint8)[0] ^= 5
    assert difference(other, quiet) == ""
    assert "at 1 of 2" in difference(np.array([np.nan, -0.0]), quiet)


@pytest.mark.parametrize("way", sorted(set(WAYS)))
def test_memory_around_a_tensor_is_watched(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shim.conformance.soak.draw.WAYS", (way,))
    for at in (0, -1):
        placed = place(Draw("seed", 1), np.arange(7.0))
        assert placed.tensor.tolist() == [0, 1, 2, 3, 4, 5, 6]
        assert placed.is_intact_outside()
        placed.memory[at] = 1
        assert not placed.is_intact_outside()


def test_all_ranks_draw_the_same_and_every_kind_is_there() -> None:
    one, other = Draw("5/1", 3), Draw("5/1", 3)
    kind = kinds()[0]
    assert [one.count(kind) for _ in range(50)] == [other.count(kind) for _ in range(50)]
    assert kinds() == list(KINDS)  # the test environment has ml_dtypes


def test_growth_is_seen() -> None:
    assert grown([9, 9, 9, 1, 1, 1, 2, 2, 5]) == (1, 5)
