"""Torch's tensors on an accelerator that torch has a backend for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import npu_ranks
import pytest
from table_on_devices import name_of

from shim.conformance.soak.operations import OPERATIONS
from shim.launch.pool import RankPool

pytestmark = pytest.mark.own_ranks


@pytest.fixture(scope="module")
def pool() -> Iterator[RankPool]:
    with RankPool(3) as made:
        yield made


def values(pool: RankPool, function: Any, *arguments: Any) -> list[Any]:
    """Return what *function* returns on each rank."""
    outcomes = pool.run(function, *arguments, deadline=15.0)
    for outcome in outcomes:
        assert outcome.error is None, outcome.error
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_the_table(pool: RankPool, operation: Any) -> None:
    values(pool, npu_ranks.table, name_of(operation))


@pytest.mark.parametrize(
    "function", [npu_ranks.refuse, npu_ranks.order_streams, npu_ranks.use_the_frontend, npu_ranks.stage]
)
def test_calls(pool: RankPool, function: Any) -> None:
    values(pool, function)


@pytest.mark.parametrize("operation", ["all_reduce", "all_to_all"])
def test_a_backend_that_fails_on_one_rank(pool: RankPool, operation: str) -> None:
    told = values(pool, npu_ranks.fail_on_one_rank, operation)
    assert told[2].startswith("test: hccl failed: the device is on fire (rank 2 of 3")
    for one in told[:2]:
        assert "rank 2 gave the group up (hccl failed: the device is on fire)" in one


def test_survivors_of_a_rank_that_dies_in_a_collective() -> None:
    with RankPool(3) as pool:
        outcomes = pool.run(npu_ranks.lose_a_rank, deadline=30.0)
        for outcome in (outcomes[0], outcomes[2]):
            assert outcome.error is None, outcome.error
            seconds, told = outcome.value
            assert seconds < 2.0
            assert told.startswith("PeerLostError: ")
            assert "rank 1" in told
            assert "SIGKILL" in told
