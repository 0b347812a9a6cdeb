"""Every collective of the table with random tensors on fake devices."""

from __future__ import annotations

import pytest
from drawn_calls import agrees_with_the_oracle, name_of
from fake_device import FakeTensor, load

from shim.conformance.soak.operations import ME, OPERATIONS, Operation
from shim.core import groups
from shim.core.collectives import COLLECTIVES

NOT_FAKED = ("float8_e4m3fn", "float8_e5m2")


def test_the_operations_are_the_whole_table() -> None:
    drawn = {name_of(operation) for operation in OPERATIONS}
    assert drawn == {row.name for row in COLLECTIVES if not row.point_to_point} | {"messages"}


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("shares", [False, True], ids=["own devices", "one device"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
def test_the_table_on_fake_devices(rank: int, operation: Operation, shares: bool) -> None:
    load()
    group = groups.enter_world(ME, "test")
    try:
        agrees_with_the_oracle(
            group,
            operation,
            lambda array: FakeTensor(array, 0 if shares else rank),
            FakeTensor.values,
            without=NOT_FAKED,
        )
    finally:
        groups.leave_world("test")
