"""How core reads MindSpore's tensors and makes others like them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore_world import DTYPES, array_of, check, make, numbers, world

import shim.frontends.mindspore.mint.distributed as dist
from shim.core.tensors import copy_of, new_like, reader_for
from shim.errors import TensorError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [None, (), (0,), (4, 1)])
def test_a_new_tensor_like_this_one(dtype: str, shape: Any) -> None:
    tensor = make("mindspore", numbers(0, (2, 3), dtype), dtype)
    new = new_like(tensor, shape)
    assert type(new) is mindspore.Tensor
    assert (new.dtype, new.shape) == (tensor.dtype, (2, 3) if shape is None else shape)
    assert new.is_contiguous()
    assert new.data_ptr() != tensor.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_copy(dtype: str) -> None:
    tensor = make("mindspore", numbers(0, (2, 3), dtype), dtype)
    for source in (tensor, tensor[1], tensor.transpose(1, 0), mindspore.Parameter(tensor, name="parameter")):
        copied = copy_of(source)
        assert type(copied) is mindspore.Tensor
        assert copied.data_ptr() != source.data_ptr()
        check("mindspore", copied, array_of(source), dtype)


def test_float8_has_new_tensors_too() -> None:
    importlib.import_module("ml_dtypes")  # gives numpy dtypes of these names
    tensor = mindspore.Tensor(np.arange(4, dtype="uint8")).view(mindspore.float8_e5m2)
    assert (new_like(tensor, (2,)).dtype, new_like(tensor, (2,)).shape) == (mindspore.float8_e5m2, (2,))
    np.testing.assert_array_equal(array_of(copy_of(tensor).view(mindspore.uint8)), np.arange(4))


def test_a_reader_describes_views_and_tensors_still_being_computed() -> None:
    describe = reader_for(mindspore.Tensor).describe
    assert describe is not None
    base = make("mindspore", numbers(0, (3, 4)))
    address = base.data_ptr()
    assert describe(base)[:4] == (address, "float32", (3, 4), None)
    assert describe(base[1])[:4] == (address + 16, "float32", (4,), None)
    assert describe(base.transpose(1, 0))[:4] == (address, "float32", (4, 3), (1, 4))
    assert describe(make("mindspore", numbers(0, 2), "bfloat16")).dtype == "bfloat16"
    ones = make("mindspore", np.ones((300, 300), "float32"))
    product = mindspore.mint.matmul(ones, ones)
    assert describe(product).owner is product
    check("mindspore", product, np.full((300, 300), 300, "float32"))


def test_sparse_tensors_have_no_reader() -> None:
    with pytest.raises(TensorError, match="dense"):
        reader_for(mindspore.COOTensor)


@pytest.mark.ranks(2)
def test_operators_that_still_read_a_tensor_have_ended_before_it_is_overwritten(rank: int, world_size: int) -> None:
    with world():
        ones = make("mindspore", np.ones((1500, 1500), "float32"))
        for _ in range(3):
            tensor = ones.copy()
            product = mindspore.mint.matmul(mindspore.mint.matmul(tensor, ones), tensor)
            dist.all_reduce(tensor)
            check("mindspore", tensor, np.full((1500, 1500), world_size, "float32"))
            check("mindspore", product, np.full((1500, 1500), 1500.0**2, "float32"))


def test_a_tensor_without_memory_is_refused() -> None:
    with world(), pytest.raises(TensorError, match="host memory, got device meta"):
        dist.all_reduce(mindspore.Tensor(np.ones(2, "float32"), device="meta"))


def test_mindspore_has_nothing_to_warn_of() -> None:
    program = (
        "import mindspore; import shim.frontends.mindspore.mint.distributed as dist; dist.init_process_group();"
        "tensor = mindspore.Tensor([1.0]); dist.all_reduce(tensor); dist.all_gather([tensor.copy()], tensor)"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GLOG")}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment
    )
    assert (ended.returncode, "WARNING" in ended.stderr) == (0, False), ended.stderr
