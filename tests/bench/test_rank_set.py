"""Real rank processes: ours measured, and others that die, hang, refuse or calculate wrongly."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from child_processes import children

from shim.bench.cases import COLLECTIVES, Case
from shim.bench.plan import CONTENDERS, Contender
from shim.bench.ranks.rank_set import RanksEndedError, RankSet
from shim.bench.ranks.turn import OverlapTurn, Turn

SMALL = Case("all_reduce", 2, "float32", 8)
ONE_TURN = Turn(SMALL, samples=1, warm_up=1, check=True)


def broken(name: str) -> Contender:
    return Contender(name, name, f"broken_libraries:{name}")


def test_the_bare_engine_does_every_collective_and_leaves_nothing() -> None:
    before = children()
    ranks = RankSet(CONTENDERS["engine"], 2, processors=2)
    assert set(ranks.versions) == {"shim", "numpy"}
    for collective in COLLECTIVES:
        for size in (8, 4096):
            answers = ranks.ask(Turn(Case(collective, 2, "float32", size), 3, 1, check=True), 30)
            assert [(one.cannot, one.error, len(one.seconds)) for one in answers] == [(None, None, 3)] * 2
            assert all(seconds > 0 for one in answers for seconds in one.seconds)
    answers = ranks.ask(OverlapTurn(Case("all_reduce", 2, "float32", 4096), 16, 2), 30)
    assert [len(one.seconds) for one in answers] == [6, 6]
    ranks.close()
    assert children() == before


def test_three_ranks_have_partners_where_there_are_some() -> None:
    ranks = RankSet(CONTENDERS["engine"], 3, processors=2)
    for collective in ("send_receive", "all_gather_unequal"):
        answers = ranks.ask(Turn(Case(collective, 3, "int64", 8), 2, 1, check=True), 30)
        assert [(one.cannot, one.error) for one in answers] == [(None, None)] * 3
    ranks.close()


def test_ranks_sleep_between_turns() -> None:
    ranks = RankSet(CONTENDERS["engine"], 2, processors=2)
    ranks.ask(ONE_TURN, 30)
    time.sleep(0.2)  # whoever spins after a call has given up by now
    before = [_processor_time(pid) for pid in ranks.pids]
    time.sleep(0.5)
    spent = [
        after - earlier for after, earlier in zip((_processor_time(pid) for pid in ranks.pids), before, strict=True)
    ]
    ranks.close()
    assert max(spent) <= 2  # hundredths of a second


def test_a_rank_that_dies_is_told_of_with_what_it_printed() -> None:
    before, ranks = children(), RankSet(broken("Dying"), 2, processors=2)
    with pytest.raises(RanksEndedError, match=r"(?s)rank 1 has died.*last words"):
        ranks.ask(ONE_TURN, 30)
    assert children() == before


def test_a_rank_that_hangs_is_ended() -> None:
    before, ranks = children(), RankSet(broken("Hanging"), 2, processors=2)
    with pytest.raises(RanksEndedError, match="rank 0, 1 had not answered after 1 s"):
        ranks.ask(ONE_TURN, 1.0)
    assert children() == before


def test_what_a_library_refuses_is_an_answer() -> None:
    ranks = RankSet(broken("Refusing"), 2, processors=2)
    assert [one.cannot for one in ranks.ask(ONE_TURN, 30)] == ["has no such thing"] * 2
    ranks.close()


def test_a_wrong_result_is_found_on_the_rank_that_has_it() -> None:
    ranks = RankSet(broken("Wrong"), 2, processors=2)
    with pytest.raises(RanksEndedError, match="wrong result: rank 1 of all_reduce"):
        ranks.ask(ONE_TURN, 30)


def test_a_library_that_does_not_open_says_why() -> None:
    with pytest.raises(RanksEndedError, match="RuntimeError: no licence"):
        RankSet(broken("NotStarting"), 2, processors=2)


def _processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
