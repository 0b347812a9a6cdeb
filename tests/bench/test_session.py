"""Turns: that contenders alternate, that everyone gets the same, and that who cannot, hangs or dies is told of and not in the way."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

import pytest
from fakes import FakeRanks, Reply, Told, dying, plan, refusing, steady

from shim.bench.cases import Case
from shim.bench.plan import Contender, Plan
from shim.bench.ranks.rank_set import RanksEndedError
from shim.bench.ranks.turn import Answer, OverlapTurn, Turn
from shim.bench.session import TOO_LONG, Outcome, Pace, first_turn, in_turn, run_session


class Played:
    """A session with these contenders, and everything that came of it."""

    def __init__(self, asked: Plan, replies: Mapping[str, Reply]) -> None:
        self.log: list[tuple[str, Turn | OverlapTurn]] = []
        self.started: list[FakeRanks] = []
        self.progress = Told()
        self.replies = replies
        self.outcome: Outcome = run_session(asked, self.start, self.progress)

    def start(self, contender: Contender, ranks: int) -> FakeRanks:
        if contender.name not in self.replies:
            raise RanksEndedError("did not start")
        self.started.append(FakeRanks(contender.name, self.replies[contender.name], self.log))
        return self.started[-1]

    def status(self, name: str) -> set[tuple[str, str]]:
        return {(result.status, result.reason) for result in self.outcome.results if result.contender == name}


def test_the_order_puts_everyone_first_in_turn_and_after_everyone_else() -> None:
    assert [in_turn("abc", 0, place) for place in range(3)] == [list("abc"), list("bca"), list("cab")]
    assert in_turn("abc", 1, 0) == list("acb")
    orders = [in_turn("abcd", number, place) for number in range(4) for place in range(3)]
    assert {order[0] for order in orders} == set("abcd")
    neighbours = {pair for order in orders for pair in itertools.pairwise(order)}
    assert {("a", "b"), ("b", "a"), ("d", "c"), ("c", "d")} <= neighbours


def test_contenders_take_turns_within_every_case_of_every_round() -> None:
    names = ("engine", "gloo", "openmpi")
    played = Played(plan(names), dict.fromkeys(names, steady(1e-5)))
    counted = played.log[2 * 2 * 3 :]  # after the first round, in which everyone has two turns of each size
    turns = [(name, request.case) for name, request in counted if isinstance(request, Turn)]
    groups = [turns[at : at + 3] for at in range(0, len(turns), 3)]
    assert len(groups) == 4 * 2  # rounds and sizes
    for group in groups:
        assert {name for name, _ in group} == set(names)
        assert len({case for _, case in group}) == 1
    assert {group[0][0] for group in groups} == set(names)
    assert [group[0][1].size for group in groups] == [8, 4096] * 4


def test_results_are_checked_in_the_first_round_which_is_not_counted() -> None:
    played = Played(plan(["engine"]), {"engine": steady(1e-5)})
    turns = [request for _, request in played.log if isinstance(request, Turn)]
    assert [turn.check for turn in turns] == [*[True] * 4, *[False] * 8]
    assert [turn.calls for turn in turns[:4]] == [1, 32, 1, 32]
    for result in played.outcome.results:
        assert result.figures is not None
        assert len(result.figures.rounds) == 4
        assert result.figures.median == pytest.approx(20)  # the slowest rank's
    assert [turn.warm_up for turn in turns[:4]] == [0, 6, 0, 6]


def test_a_turn_has_as_many_samples_as_fit_and_at_least_three() -> None:
    played = Played(plan(["engine", "gloo"]), {"engine": steady(5e-4), "gloo": steady(1.0 - 1e-9)})
    samples = {name: request.samples for name, request in played.log if isinstance(request, Turn) and not request.check}
    assert samples == {"engine": 10, "gloo": 3}  # 10 ms a turn; the last rank takes twice as long


def test_after_a_call_that_takes_too_long_larger_ones_are_not_waited_for() -> None:
    played = Played(plan(["engine", "gloo"], sizes=(8, 64, 4096)), {"engine": steady(1e-5), "gloo": steady(1.5)})
    assert played.status("engine") == {("measured", "")}
    found = [(one.case.size, one.status, one.reason) for one in played.outcome.results if one.contender == "gloo"]
    assert found == [
        (8, "measured", ""),
        (64, "skipped", "8 B take 3.0 s, larger ones are not measured"),
        (4096, "skipped", "8 B take 3.0 s, larger ones are not measured"),
    ]
    assert {request.samples for name, request in played.log if name == "gloo" and not request.check} == {1}


def test_of_several_ways_the_faster_one_counts() -> None:
    def reply(request: Turn | OverlapTurn) -> list[Answer]:
        return [Answer([*[4e-5] * request.samples, *[1e-5] * request.samples], 1e-5, ways=2)] * 2

    (result, _) = Played(plan(["engine"]), {"engine": reply}).outcome.results
    assert result.figures is not None
    assert (result.figures.median, result.figures.upper_quartile) == (pytest.approx(10), pytest.approx(10))


def test_what_there_is_is_kept_after_each_number_of_ranks() -> None:
    kept: list[set[int]] = []
    started: list[FakeRanks] = []

    def start(contender: Contender, ranks: int) -> FakeRanks:
        started.append(FakeRanks(contender.name, steady(1e-5), []))
        return started[-1]

    def keep(outcome: Outcome) -> None:
        assert all(ranks.closed for ranks in started)
        kept.append({result.case.ranks for result in outcome.results})

    run_session(plan(["engine"], ranks=(2, 3)), start, Told(), keep)
    assert kept == [{2}, {2, 3}]


def test_who_cannot_says_so_and_is_asked_once() -> None:
    played = Played(plan(["engine", "gloo"]), {"engine": steady(1e-5), "gloo": refusing})
    assert played.status("gloo") == {("cannot", "has no such thing")}
    assert played.status("engine") == {("measured", "")}
    assert Counter(name for name, _ in played.log)["gloo"] == 2  # sizes


def test_who_dies_is_started_again_for_the_next_case_but_not_for_ever() -> None:
    sizes = tuple(8 << shift for shift in range(6))
    played = Played(plan(["engine", "gloo"], sizes=sizes), {"engine": steady(1e-5), "gloo": dying})
    assert played.status("gloo") == {("failed", "rank 1 has died"), ("failed", "its ranks had to be ended 4 times")}
    assert Counter(ranks.name for ranks in played.started) == {"engine": 1, "gloo": 4}
    assert played.status("engine") == {("measured", "")}


def test_who_does_not_start_is_told_of_and_the_rest_goes_on() -> None:
    played = Played(plan(["engine", "gloo"]), {"engine": steady(1e-5)})
    assert played.status("gloo") == {("failed", "did not start")}
    assert played.status("engine") == {("measured", "")}


def test_what_needs_too_much_memory_is_skipped_for_everyone() -> None:
    played = Played(plan(["engine"], memory=lambda ranks: 100 * ranks, sizes=(4096,)), {"engine": steady(1e-5)})
    (result,) = played.outcome.results
    assert result.status == "skipped"
    assert played.log == []


def test_ranks_are_closed_at_the_end_and_started_for_every_number_of_them() -> None:
    played = Played(plan(["engine"], ranks=(2, 3)), {"engine": steady(1e-5)})
    assert [ranks.closed for ranks in played.started] == [True, True]
    assert {result.case.ranks for result in played.outcome.results} == {2, 3}


def test_the_machine_is_measured_by_one_floor() -> None:
    played = Played(plan(["engine", "floor-one-copy", "floor-two-copies"]), dict.fromkeys(
        ("engine", "floor-one-copy", "floor-two-copies"), steady(1e-5)
    ))  # fmt: skip
    lines = [result for result in played.outcome.results if result.case.collective == "line_round_trip"]
    assert [result.contender for result in lines] == ["floor-one-copy"]


def test_progress_ends_at_the_plans_weight() -> None:
    asked = plan(["engine", "gloo", "floor-one-copy"], overlap=Case("all_reduce", 2, "float32", 4096))
    played = Played(asked, dict.fromkeys(("engine", "gloo", "floor-one-copy"), steady(1e-5)))
    assert played.progress.weight == pytest.approx(asked.weight)


def test_an_overlap_is_measured_with_matrices_of_the_right_size() -> None:
    def reply(request: Turn | OverlapTurn) -> list:
        answers = steady(1e-5)(request)
        if isinstance(request, OverlapTurn):
            product = 1e-3 * (request.side / 512) ** 3
            answers = [type(answers[0])([8e-3, product, 9e-3] * request.samples, 1e-2)] * 2
        return answers

    case = Case("all_reduce", 2, "float32", 4096)
    played = Played(plan(["engine", "gloo"], overlap=case), {"engine": reply, "gloo": refusing})
    ours, theirs = played.outcome.overlaps
    assert (ours.side, ours.communication, ours.product, ours.together) == (1024, *map(pytest.approx, (8e3, 8e3, 9e3)))
    assert ours.ratio == pytest.approx(9 / 8)
    assert ours.samples == 12
    assert theirs.reason == "has no such thing"


def test_computed_dtypes_are_measured_where_the_collective_computes_on_the_fewest_ranks() -> None:
    several = plan(("engine",), collectives=("all_reduce", "all_gather"), ranks=(2, 4), sizes=(8,), computed=("int64",))
    assert [(case.collective, case.dtype) for case in several.cases(2)] == [
        ("all_reduce", "float32"),
        ("all_reduce", "int64"),
        ("all_gather", "float32"),
    ]
    assert {case.dtype for case in several.cases(4)} == {"float32"}


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
