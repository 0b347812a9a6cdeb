"""Every collective of the table with random CUDA tensors: one rank by NCCL, and several on one GPU by what they share and through host memory."""

from __future__ import annotations

import pytest
from cuda_tensors import KINDS
from table_on_devices import agrees_with_the_oracle, name_of

from shim.conformance.soak.operations import ME, OPERATIONS, Operation
from shim.core import groups

pytestmark = [pytest.mark.gpu, pytest.mark.parametrize("kind", KINDS)]


def carry_out(operation: Operation, kind: str, backend: str, engine: str) -> None:
    group = groups.enter_world(ME, "test", backend=backend)
    try:
        made = KINDS[kind]
        agrees_with_the_oracle(group, operation, made.make, made.values, made.without)
        if name_of(operation) not in ("barrier", "messages"):
            assert group.engines_of_devices()["cuda"].startswith(f"engine {engine}")
    finally:
        groups.leave_world("test")


@pytest.mark.ranks(1)
@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_the_table_by_nccl(kind: str, operation: Operation) -> None:
    carry_out(operation, kind, "nccl", "nccl")


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_the_table_on_one_device(kind: str, operation: Operation) -> None:
    carry_out(operation, kind, "nccl", "nccl, whose ranks share a device")


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_the_table_through_host_memory(kind: str, operation: Operation) -> None:
    carry_out(operation, kind, "gloo", "through host memory")
