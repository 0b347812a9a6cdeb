"""The least bytes of each collective, and that what is measured of the machine can be true."""

from __future__ import annotations

import pytest

from shim.bench.cases import Case
from shim.bench.contenders import CONTENDERS
from shim.bench.floors import ONE_COPY, TWO_COPIES, movement_of, peers_of
from shim.bench.machine_cases import LINE
from shim.bench.rank_set import RankSet
from shim.bench.turn import Turn

SIZE = 1680 * 1024  # bytes; 2, 3, 4, 7 and 8 ranks divide it
RANKS = (2, 3, 4, 7, 8)


@pytest.mark.parametrize("ranks", RANKS)
def test_an_all_reduce_loads_and_stores_what_the_two_shot_algorithm_must(ranks: int) -> None:
    movement = movement_of(Case("all_reduce", ranks, "float32", SIZE), TWO_COPIES, 0)
    loads = movement.moved
    stores = loads - movement.fold - movement.read
    assert loads == pytest.approx((3 * ranks - 2) / ranks * SIZE)
    assert stores == pytest.approx(2 * SIZE)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", [ONE_COPY, TWO_COPIES])
@pytest.mark.parametrize(
    "collective", ["all_reduce", "all_gather", "all_gather_unequal", "all_to_all", "reduce_scatter"]
)
def test_every_output_is_written_in_full(collective: str, kind: str, ranks: int) -> None:
    case = Case(collective, ranks, "float32", SIZE)
    for rank in range(ranks):
        assert movement_of(case, kind, rank).output == pytest.approx(case.output_count(rank) * 4, abs=4 * ranks)


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all", "reduce_scatter", "broadcast"])
def test_one_copy_moves_less_than_two(collective: str) -> None:
    case = Case(collective, 4, "float32", SIZE)
    one, two = (sum(movement_of(case, kind, rank).moved for rank in range(4)) for kind in (ONE_COPY, TWO_COPIES))
    assert one < two


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", [ONE_COPY, TWO_COPIES])
@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all", "reduce_scatter"])
def test_every_byte_of_an_input_is_read_by_somebody(collective: str, kind: str, ranks: int) -> None:
    case = Case(collective, ranks, "float32", SIZE)
    for rank in range(ranks):
        movement = movement_of(case, kind, rank)
        read = {range(movement.into_ring), range(movement.own_at, movement.own_at + movement.own + movement.update)}
        if movement.slices:
            read = {range(movement.slices)}
        for other in range(ranks) if kind == ONE_COPY else ():
            movement = movement_of(case, kind, other)
            if other != rank and movement.shared:
                read.add(range(movement.direct_at, movement.direct_at + movement.shared // (ranks - 1)))
        assert sum(len(part) for part in read) == SIZE
        assert max(part.stop for part in read) == SIZE


def test_receivers_of_a_broadcast_read_the_root_and_partners_each_other() -> None:
    assert [peers_of(Case("broadcast", 4, "float32", 8), rank) for rank in (1, 3)] == [(0, 1), (0, 1)]
    assert [peers_of(Case("send_receive", 4, "float32", 8), rank) for rank in (0, 3)] == [(1, 1), (2, 1)]
    assert [peers_of(Case("all_gather", 4, "float32", 8), rank) for rank in (0, 3)] == [(1, 3), (0, 3)]


def test_less_than_a_byte_for_each_rank_is_moved_too() -> None:
    floor = RankSet(CONTENDERS[ONE_COPY], 3, processors=2)
    for collective in ("all_reduce", "all_gather_unequal", "all_to_all"):
        case = Case(collective, 3, "bfloat16", 1)
        assert [one.error for one in floor.ask(Turn(case, 2, 1, check=True), 30)] == [None] * 3
    floor.close()


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_measured_is_plausible(ranks: int) -> None:
    size = 256 << 10
    times = {}
    for kind in (ONE_COPY, TWO_COPIES):
        floor = RankSet(CONTENDERS[kind], ranks, processors=2)
        for collective in ("all_gather", "all_reduce", "reduce_scatter", "broadcast", "barrier"):
            answers = floor.ask(Turn(Case(collective, ranks, "float32", size), 5, 2, check=True), 30)
            times[kind, collective] = min(max(sample) for sample in zip(*(one.seconds for one in answers), strict=True))
        if kind == ONE_COPY:
            answers = floor.ask(Turn(Case(LINE, ranks, "int64", 8), 3, 1, check=True), 30)
            trip = min(answers[0].seconds)
        floor.close()
    assert 1e-9 < trip < 1e-2  # the two ranks may have to share a processor with something else
    for (kind, collective), seconds in times.items():
        if collective != "barrier":
            assert size / 1e12 < seconds < 1, (kind, collective)
