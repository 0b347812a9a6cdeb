"""The least bytes of each collective, and that what is measured of the machine can be true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shim.bench.cases import LINE, Case
from shim.bench.floors import ONE_COPY, TWO_COPIES, movement_of, peers_of
from shim.bench.libraries.base import Place
from shim.bench.libraries.floor import OneCopy
from shim.bench.plan import CONTENDERS
from shim.bench.ranks.rank_set import RankSet
from shim.bench.ranks.turn import Turn

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
def test_of_a_broadcast_in_shared_memory_all_ranks_copy_as_much_and_every_output_is_whole(ranks: int) -> None:
    movements = [movement_of(Case("broadcast", ranks, "float32", SIZE), ONE_COPY, rank) for rank in range(ranks)]
    assert {movement.moved for movement in movements} == {SIZE * (ranks - 1) // ranks}
    root = movements[0]
    for other in movements[1:]:
        assert other.direct_at + other.direct == root.push_at  # where the root's part of the output begins
        assert root.push_at + root.push // (ranks - 1) == SIZE


@pytest.mark.parametrize("ranks", RANKS)
def test_of_a_message_in_shared_memory_both_copy_half(ranks: int) -> None:
    movements = [movement_of(Case("send_receive", ranks, "float32", SIZE), ONE_COPY, rank) for rank in range(ranks)]
    for rank, movement in enumerate(movements):
        if rank ^ 1 >= ranks:
            assert movement.moved == 0
        else:
            assert (movement.push, movement.direct) == ((SIZE // 2, 0) if rank % 2 == 0 else (0, SIZE // 2))
            assert movement.push_at == movement.push


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("collective", ["broadcast", "send_receive"])
def test_of_private_tensors_the_owner_alone_copies(collective: str, ranks: int) -> None:
    for rank in range(ranks):
        movement = movement_of(Case(collective, ranks, "float32", SIZE), TWO_COPIES, rank)
        sends = rank == 0 if collective == "broadcast" else rank % 2 == 0
        alone = collective == "send_receive" and rank ^ 1 >= ranks
        expected = 0 if alone else SIZE
        assert (movement.into_ring if sends else movement.out_of_ring) == movement.moved == expected


@pytest.mark.parametrize("collective", ["broadcast", "send_receive"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_copied_by_several_arrives_whole(collective: str, ranks: int, tmp_path: Path) -> None:
    size = 300 * 1024 + 4  # bytes; several chunks and a rest
    segment = tmp_path / "segment"
    segment.touch()
    everywhere = os.sched_getaffinity(0)
    try:
        floors = [OneCopy(Place(rank, ranks, "", 2, str(segment), ())) for rank in range(ranks)]
    finally:
        os.sched_setaffinity(0, everywhere)
    batches = [floor.batch(Case(collective, ranks, "float32", size), 1) for floor in floors]
    for batch in batches:
        batch.rewrite()
    if collective == "broadcast":
        for other in batches[1:]:
            other._tensor.fill(7)
    for batch in batches:
        batch.run()
    for rank, batch in enumerate(batches):
        receives = rank > 0 if collective == "broadcast" else rank % 2 == 1
        assert len(batch._output) == size
        assert not receives or (batch._output == 2).all()
    for batch in batches:
        batch.close()


@pytest.mark.parametrize("kind", [ONE_COPY, TWO_COPIES])
def test_all_ranks_take_the_same_ways_and_larger_outputs_are_streamed_too(kind: str) -> None:
    floor = RankSet(CONTENDERS[kind], 2, processors=2)
    for collective in ("broadcast", "send_receive", "all_gather_unequal", "reduce_scatter"):
        for size, ways in ((4096, 1), (4 << 20, 2)):
            answers = floor.ask(Turn(Case(collective, 2, "float32", size), 3, 1, check=True), 30)
            assert [(one.ways, len(one.seconds)) for one in answers] == [(ways, 3 * ways)] * 2
    floor.close()


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
            answers = floor.ask(Turn(Case(LINE, ranks, "int64", 8), 100, 1, check=True), 30)
            trip = min(answers[0].seconds)
        floor.close()
    assert 1e-9 < trip < 1e-2  # the two ranks may have to share a processor with something else
    for (kind, collective), seconds in times.items():
        if collective != "barrier":
            assert size / 1e12 < seconds < 1, (kind, collective)
