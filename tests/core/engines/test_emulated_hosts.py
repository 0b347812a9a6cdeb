"""The engines over networks on one host whose ranks play several: random calls in changing groups, every value on every rank."""

from __future__ import annotations

from collections.abc import Iterator

import emulated_hosts
import numpy as np
import preloaded_programs
import pytest

from shim.conformance.soak.rank import Era
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
    for outcome in pool.run(emulated_hosts.refused_number, hosts, deadline=30.0):
        assert outcome.value.startswith("ArgumentError: test: SHIM_EMULATED_HOSTS must be a number from 1 on, got")


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
