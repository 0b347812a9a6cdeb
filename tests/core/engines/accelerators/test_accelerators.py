"""Torch's tensors on an accelerator that torch has a backend for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import failing_npu_ranks
import npu_ranks
import pytest
from drawn_calls import name_of

from shim.conformance.soak.operations import OPERATIONS
from shim.launch.pool import RankPool

pytestmark = pytest.mark.own_ranks


@pytest.fixture(scope="module", params=[2, 3])
def pool(request: pytest.FixtureRequest) -> Iterator[RankPool]:
    with RankPool(request.param) as made:
        yield made


def values(pool: RankPool, function: Any, *arguments: Any) -> list[Any]:
    """Return what *function* returns on each rank."""
    outcomes = pool.run(function, *arguments, deadline=60.0)
    for outcome in outcomes:
        assert outcome.error is None, outcome.error
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_the_table(pool: RankPool, operation: Any) -> None:
    values(pool, npu_ranks.table, name_of(operation))


@pytest.mark.parametrize(
    "function",
    [
        npu_ranks.reduce_special_numbers,
        npu_ranks.refuse,
        npu_ranks.refuse_a_backend,
        npu_ranks.refuse_in_a_graph,
        npu_ranks.order_streams,
        npu_ranks.pass_messages_beside_collectives,
        npu_ranks.change_a_list_meanwhile,
        npu_ranks.use_the_frontend,
        npu_ranks.call_hooks,
        npu_ranks.stage,
        npu_ranks.leave_nothing,
        npu_ranks.leave_a_message,
        failing_npu_ranks.lose_an_event,
        failing_npu_ranks.abort_what_is_not_reached,
    ],
)
def test_calls(pool: RankPool, function: Any) -> None:
    values(pool, function)


@pytest.mark.parametrize("operation", ["all_reduce", "all_to_all"])
def test_a_backend_that_fails_on_one_rank(pool: RankPool, operation: str) -> None:
    *others, told = values(pool, failing_npu_ranks.fail_on_one_rank, operation)
    assert told.startswith("test: hccl failed: the device is on fire (rank")
    for one in others:
        assert f"rank {len(others)} gave the group up (hccl failed: the device is on fire)" in one


def test_a_backend_that_fails_in_a_message(pool: RankPool) -> None:
    told = values(pool, failing_npu_ranks.fail_in_a_message)
    assert told[1].startswith("test: hccl failed: the device is on fire (rank 1")
    for one in (told[0], *told[2:]):
        assert "rank 1 gave the group up (a message on a device has failed: hccl failed: the device is on fire" in one


@pytest.mark.parametrize("is_first", [True, False], ids=["in the first", "in a later"])
def test_survivors_of_a_rank_that_dies_in_a_collective(is_first: bool) -> None:
    with RankPool(3) as pool:
        outcomes = pool.run(failing_npu_ranks.lose_a_rank, is_first, deadline=60.0)
        for outcome in (outcomes[0], outcomes[2]):
            assert outcome.error is None, outcome.error
            seconds, told = outcome.value
            assert seconds < 10.0  # on a busy machine; what waits for the one that died does so for ever
            assert "rank 1" in told
            assert "SIGKILL" in told
