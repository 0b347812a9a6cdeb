"""NCCL's operations are ordered on the program's streams, may overlap, become part of graphs, and leave nothing behind."""

from __future__ import annotations

import pytest
import rank_checks
from cuda_tensors import KINDS

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("kind", KINDS)]


@pytest.mark.ranks(1)
@pytest.mark.parametrize("async_op", [False, True])
def test_a_call_is_ordered_on_the_current_stream(kind: str, async_op: bool) -> None:
    rank_checks.order_on_stream(kind, async_op)


@pytest.mark.ranks(1)
def test_an_asynchronous_call_overlaps(kind: str) -> None:
    rank_checks.overlap(kind)


@pytest.mark.ranks(1)
@pytest.mark.parametrize("async_op", [False, True])
def test_a_call_becomes_part_of_a_graph(kind: str, async_op: bool) -> None:
    assert rank_checks.capture(kind, async_op)


@pytest.mark.ranks(1)
def test_memory_is_freed_with_the_group(kind: str) -> None:
    rank_checks.come_and_go(kind, times=4, seconds=30.0)
