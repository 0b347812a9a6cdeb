"""Every collective with random CUDA tensors: one rank by NCCL, several on one GPU by what they share and through host memory."""

from __future__ import annotations

import pytest
from cuda_tensors import KINDS
from drawn_calls import NAMES
from rank_checks import BY_NCCL, ON_ONE_DEVICE, draw_calls

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.parametrize("kind", KINDS),
    pytest.mark.parametrize("operation", NAMES),
]
CALLS = 30


@pytest.mark.ranks(1)
def test_the_table_by_nccl(kind: str, operation: str) -> None:
    draw_calls(kind, operation, CALLS, BY_NCCL)


@pytest.mark.ranks(2, 4)
def test_the_table_on_one_device(kind: str, operation: str) -> None:
    draw_calls(kind, operation, CALLS, ON_ONE_DEVICE)


@pytest.mark.ranks(2, 4)
def test_the_table_through_host_memory(kind: str, operation: str) -> None:
    draw_calls(kind, operation, CALLS, "through host memory", "gloo")
