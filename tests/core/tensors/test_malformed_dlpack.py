"""Tensors that DLPack describes as none can be: each is refused, by name, and nothing of its memory is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from described_tensors import Described

from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.reduce_ops import ReduceOp
from shim.errors import TensorError

ME = Caller("test", input="tensor", output="tensor")
BOOL, FLOAT8 = 6, 10
HUGE = 1 << 62


@pytest.fixture(scope="module")
def alone() -> Iterator[ProcessGroup]:
    yield groups.enter_world(ME, "test", rank=0, world_size=1)
    groups.close_world()


def fill_with_two(group: ProcessGroup, tensor: Any, shape: tuple[int, ...] = (4,)) -> None:
    calls.all_reduce(ME, group, tensor, np.full(shape, 2, "float32"), ReduceOp.SUM).wait()


@pytest.mark.parametrize(
    "fields",
    [{}, {"strides": (1,)}, {"strides": (-1,), "byte_offset": 12}, {"shape": (2, 2), "strides": (1, 2)}],
    ids=str,
)
def test_what_is_well_described_is_read(alone: ProcessGroup, fields: dict[str, Any]) -> None:
    tensor = Described(**fields)
    fill_with_two(alone, tensor, fields.get("shape", (4,)))
    assert tensor.memory.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"major": 2}, "described by DLPack 2.0, and this project reads version 1"),
        ({"ndim": -1}, "has -1 dimensions"),
        ({"ndim": 1 << 30}, "at most 16 dimensions"),
        ({"shape": None, "ndim": 1}, "has dimensions, and no shape"),
        ({"shape": (-4,)}, "a dimension of -4 elements"),
        ({"shape": (2, -2)}, "a dimension of -2 elements"),
        ({"shape": (HUGE, 4)}, "than any memory has bytes"),
        ({"shape": (HUGE, 0, 4)}, "than any memory has bytes"),
        ({"shape": (2,), "strides": (HUGE,)}, "than any memory has bytes"),
        ({"shape": (2,), "strides": (-(1 << 63),)}, "than any memory has bytes"),
        ({"shape": (2, 2), "strides": (1 << 60, 1 << 60)}, "than any memory has bytes"),
        ({"data": None}, "has no memory"),
        ({"byte_offset": (1 << 64) - 1}, "begins 18446744073709551615 bytes behind its memory"),
        ({"lanes": 4}, "4 lanes"),
        ({"lanes": 0}, "0 lanes"),
        ({"bits": 31}, "31 bits"),
        ({"code": 99}, "type code 99"),
        ({"code": BOOL}, "type code 6, 32 bits"),
        ({"code": FLOAT8}, "type code 10, 32 bits"),
        ({"device_type": 2}, "on cuda:0"),
        ({"device_type": -5}, "on DLPack device type -5:0"),
    ],
    ids=str,
)
def test_what_is_malformed_is_refused(alone: ProcessGroup, fields: dict[str, Any], told: str) -> None:
    tensor = Described(**fields)
    with pytest.raises(TensorError, match="test: tensor") as caught:
        fill_with_two(alone, tensor)
    assert told in str(caught.value)
    assert tensor.memory.tolist() == [1.0] * 4
