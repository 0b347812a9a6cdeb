"""The engines over networks on one host whose ranks play several: random calls in changing groups, every value on every rank."""

from __future__ import annotations

import re
from collections.abc import Iterator

import emulated_hosts
import numpy as np
import preloaded_programs
import pytest

from shim.conformance.soak.soak import Era
from shim.launch.pool import RankPool

pytestmark = pytest.mark.own_ranks

CALLS = 100
SEEDS = (0, 1)
SIZES = (2, 3, pytest.param(4, marks=pytest.mark.nightly), 5)  # tests/hosts has two hosts of two ranks
MADE_OF = {
    (2, 1): "2",
    (2, 2): "1, 1",
    (3, 1): "3",
    (3, 2): "2, 1",
    (3, 3): "1, 1, 1",
    (4, 1): "4",
    (4, 2): "2, 2",
    (4, 3): "2, 1, 1",
    (5, 1): "5",
    (5, 2): "3, 2",
    (5, 3): "2, 2, 1",
}


@pytest.fixture(scope="module", params=SIZES)
def pool(request: pytest.FixtureRequest) -> Iterator[RankPool]:
    with RankPool(request.param, original=preloaded_programs.original()) as pool:
        yield pool


def carry_out(pool: RankPool, engine: str, hosts: int, seed: int, calls: int) -> str:
    """Have all ranks carry out random calls and compare every value; return what is said of their world."""
    era, said = Era(seed, 0, calls, groups=3, most=2 << 20), ""
    outcomes = pool.run(emulated_hosts.carry_out, engine, hosts, era, deadline=120.0)
    for outcome in outcomes:
        assert outcome.error is None, f"rank {outcome.rank}: {outcome.error}"
        found, said = outcome.value
        assert found.differences == []
        assert found.calls > calls / 8  # those of the world, one of four groups, at least
    return str(said)


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_shared_memory_within_hosts_and_gloo_between(pool: RankPool, hosts: int) -> None:
    size = len(pool.run(bool, deadline=30.0))
    for seed in SEEDS:
        said = carry_out(pool, "hierarchical", hosts, seed, CALLS)
        assert "engine hierarchical over gloo, as SHIM_ENGINE says" in said
        assert f"(of {MADE_OF[size, min(hosts, size)]} ranks)" in said


@pytest.mark.parametrize("hosts", ["0", "-1", "two"])
def test_no_number_of_hosts(hosts: str, pool: RankPool) -> None:
    for outcome in pool.run(emulated_hosts.refused, "SHIM_EMULATED_HOSTS", hosts, deadline=30.0):
        assert outcome.value.startswith("ArgumentError: test: SHIM_EMULATED_HOSTS must be a number from 1 on, got")


@pytest.mark.parametrize("variable", ["SHIM_STALL_WARNING", "SHIM_ACROSS", "SHIM_STAGE"])
def test_values_that_are_none(variable: str, pool: RankPool) -> None:
    for outcome in pool.run(emulated_hosts.refused, variable, "nonsense", deadline=30.0):
        assert outcome.value.startswith(f"ArgumentError: test: {variable} must be ")


def test_groups_cost_a_descriptor_and_no_thread_and_worlds_leave_nothing() -> None:
    with RankPool(4, original=preloaded_programs.original()) as pool:
        costs = [outcome.value for outcome in pool.run(emulated_hosts.cost_of_groups, 20, deadline=60.0)]
        assert costs == [(20, 0), (0, 0), (20, 0), (0, 0)]  # ranks 0 and 2 lead their hosts
        for outcome in pool.run(emulated_hosts.left_of_worlds, 3, deadline=60.0):
            assert len(set(outcome.value)) == 1, outcome


def test_a_group_of_one_name_can_be_made_again() -> None:
    with RankPool(4, original=preloaded_programs.original()) as pool:
        assert [outcome.value for outcome in pool.run(emulated_hosts.made_again, "mine", deadline=60.0)] == [
            [4.0] * 3
        ] * 4


def test_what_a_rank_said_before_it_left_is_heard() -> None:
    with RankPool(4, original=preloaded_programs.original()) as pool:
        told = [outcome.value for outcome in pool.run(emulated_hosts.refused_by_a_leader_that_leaves, deadline=60.0)]
        assert told == ["ArgumentError", *["MismatchError"] * 3]
    with RankPool(2, original=preloaded_programs.original()) as pool:
        messages = [outcome.value for outcome in pool.run(emulated_hosts.sent_before_leaving, deadline=90.0)]
        assert messages == [[0.0] * 3, [1.0] * 3]
        waits = [outcome.value for outcome in pool.run(emulated_hosts.wait_behind_a_large_frame, deadline=60.0)]
        assert max(waits) < 10.0


@pytest.mark.parametrize(
    ("engine", "leaving", "count", "told"),
    [
        ("hierarchical", 3, 3, ["done", "done", "0.0", "left"]),
        ("hierarchical", 1, 300_000, ["done", "left", "done", "0.0"]),
        ("c10d", 3, 300_000, ["done", "done", "0.0", "left"]),
        ("hierarchical", 0, 300_000, ["left", "EngineError", "done", "PeerLostError"]),
    ],
)
def test_a_first_message_after_a_rank_has_left(engine: str, leaving: int, count: int, told: list[str]) -> None:
    """The others connect without it; but not without rank 0, by whose process they would find each other."""
    given = (engine, 2 if engine == "hierarchical" else 4, leaving, count)
    with RankPool(4, original=preloaded_programs.original()) as pool:
        outcomes = pool.run(emulated_hosts.first_message_when_one_has_left, *given, deadline=60.0)
    assert [outcome.value for outcome in outcomes] == told


@pytest.mark.parametrize("engine", ["c10d", "hierarchical"])
def test_ranks_that_wait_in_a_circle(engine: str, pool: RankPool) -> None:
    """The timeout is that of the whole wait, although the others are asked meanwhile where they are."""
    outcomes = pool.run(emulated_hosts.wait_in_a_circle, engine, deadline=60.0)
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)
    told, seconds = outcomes[0].value
    assert seconds < 3.2
    assert "operation 1 of the group made no progress for 2 s" in told
    assert "rank 0 waits in group 'pairs' for rank 1, which waits in group 'world' for rank 0: they wait" in told
    assert "emulated_hosts.py" in told
    assert "(of group 'world')" in told


def test_gloo_alone(pool: RankPool) -> None:
    assert "engine c10d, as SHIM_ENGINE says" in carry_out(pool, "c10d", 1, 0, CALLS)


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["c10d", "hierarchical"])
@pytest.mark.parametrize("seed", range(10, 14))
def test_more_calls(pool: RankPool, engine: str, seed: int) -> None:
    carry_out(pool, engine, 2, seed, 500)


@pytest.mark.parametrize("name", ["float16", "float32", "complex128", "int32"])
def test_one_wrong_element_is_seen(name: str) -> None:
    expected = np.arange(20).astype(name)
    seen = expected.copy()
    assert emulated_hosts.close_difference(seen, expected) == ""
    seen[7] += 1
    assert "at " in emulated_hosts.close_difference(seen, expected)


@pytest.mark.parametrize(
    ("dying", "left", "said"),
    [
        ("host", (0, 1), r"\[0, 1\]"),
        (
            "rank 0",
            (1, 2, 3),
            r"PeerLostError: shim.survivors: rank 0's process .*: without it nobody knows which other ranks are left",
        ),
    ],
)
def test_survivors_across_hosts(dying: str, left: tuple[int, ...], said: str) -> None:
    """Nobody of a host that is ending is left, and nobody knows without the process of rank 0."""
    with RankPool(4, original=preloaded_programs.original()) as pool:
        outcomes = pool.run(emulated_hosts.survivors_of, dying, deadline=60.0)
    for rank in left:
        assert re.match(said, str(outcomes[rank].value)), outcomes[rank]
