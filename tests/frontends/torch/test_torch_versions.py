"""The frontend beside a torch that is older than the one it has its signatures from: such a torch is made of the installed one here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import preloaded_programs
import pytest
import torch
import torch_world

import shim.frontends.torch.distributed as dist

BEFORE_2_10 = """
import torch
del torch.Tensor.__dlpack_c_exchange_api__
import torch.distributed, sys
dist = torch.distributed
if sys.argv[1] == "frontend":
    import shim.frontends.torch.distributed as dist
dist.init_process_group("shim" if sys.argv[1] == "backend" else None, rank=0, world_size=1, store=dist.HashStore())
tensor = torch.arange(6.0).reshape(2, 3).t()
version = tensor._version
dist.all_reduce(tensor)
print(tensor.tolist(), tensor._version - version)
parameter = torch.nn.Parameter(torch.ones(2))
with torch.no_grad():
    dist.broadcast(parameter, 0)
print(parameter.tolist())
"""


@pytest.mark.parametrize("way", ["frontend", "backend"])
def test_tensors_without_c_functions_of_dlpack(way: str) -> None:
    ended = preloaded_programs.run_python("-c", BEFORE_2_10, way)
    assert ended.stdout == "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] 1\n[1.0, 1.0]\n", ended.stderr


def gather(new: bool) -> None:
    output = np.zeros(2)
    function = dist.all_gather_single if new else dist.all_gather_into_tensor
    function(output, np.ones(2))


def test_a_new_name_is_advised_only_where_torch_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch_world.world():
        with pytest.warns(
            FutureWarning,
            match="renamed torch.distributed.all_gather_into_tensor to torch.distributed.all_gather_single",
        ):
            gather(new=False)
        monkeypatch.delattr(torch.distributed, "all_gather_single")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gather(new=False)


@pytest.mark.parametrize(("action", "expected"), [("default", 1), ("once", 1), ("ignore", 0), ("always", 3)])
def test_the_advice_is_given_as_often_as_filters_want(action: Any, expected: int) -> None:
    with torch_world.world(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        for _ in range(3):
            gather(new=False)
        assert len(told) == expected
        assert all(one.filename == __file__ for one in told)


def test_each_place_of_a_call_and_each_set_of_filters_is_told() -> None:
    with torch_world.world():
        for _ in range(2):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("default")
                gathering: Callable[..., Any] = dist.all_gather_into_tensor
                for _ in range(2):
                    gathering(np.zeros(2), np.ones(2))
                gathering(np.zeros(2), np.ones(2))
                assert len(told) == 2
                warnings.simplefilter("error")
                with pytest.raises(FutureWarning):
                    gathering(np.zeros(2), np.ones(2))


AS_INSTALLED = """
import torch.distributed
del torch.distributed.all_gather_single
from shim.substitution import as_installed
with as_installed():
    import torch.distributed as dist
print(hasattr(dist, "all_gather_single"), "all_gather_single" in dir(dist), hasattr(dist, "all_gather_into_tensor"))
import torch.distributed.distributed_c10d
with as_installed():
    from torch.distributed import distributed_c10d
print(hasattr(distributed_c10d, "TCPStore"))
"""


def test_as_installed_shows_no_name_that_torch_lacks() -> None:
    ended = preloaded_programs.run_python("-W", "ignore", "-c", AS_INSTALLED)
    assert ended.stdout == "False False True\nTrue\n", ended.stderr
