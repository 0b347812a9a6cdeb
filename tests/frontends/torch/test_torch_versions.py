"""The frontend beside a torch that is older than the one it has its signatures from: such a torch is made of the installed one here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import preloaded_programs
import pytest
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


def gather() -> None:
    dist._all_gather_base(np.zeros(2), np.ones(2))


WARNING = """
import warnings
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
for name in ("all_gather_into_tensor", "_all_gather_base"):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        getattr(dist, name)(np.zeros(2), np.ones(2))
    print(*(one.message for one in told))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    dist.nn.functional.all_gather(np.ones(2))
print(*(one.message for one in told))
"""
OF_NN = "torch deprecates torch.distributed.nn.functional.all_gather; call torch.distributed._functional_collectives."
OF_BASE = "torch deprecates torch.distributed._all_gather_base; call torch.distributed."


@pytest.mark.parametrize(
    ("release", "told"),
    [
        ("torch-2.11", ["", f"{OF_BASE}all_gather_into_tensor", ""]),
        ("torch-2.12", ["", f"{OF_BASE}all_gather_into_tensor", f"{OF_NN}all_gather_tensor"]),
        (
            "torch-2.13",
            [
                "torch 2.13 renamed torch.distributed.all_gather_into_tensor to torch.distributed.all_gather_single; call it by the new name",
                f"{OF_BASE}all_gather_single",
                f"{OF_NN}all_gather_single",
            ],
        ),
        ("torch-2.15", ["", f"{OF_BASE}all_gather_single", f"{OF_NN}all_gather_single"]),
    ],
)
def test_the_warnings_are_those_of_the_release(release: str, told: list[str]) -> None:
    code = WARNING.replace("as dist\n", "as dist\nimport shim.frontends.torch.distributed.nn\n", 1)
    ended = preloaded_programs.run_python("-c", code, env={**os.environ, "SHIM_API": release})
    assert ended.stdout.splitlines() == told, ended.stderr


@pytest.mark.parametrize(("action", "expected"), [("default", 1), ("once", 1), ("ignore", 0), ("always", 3)])
def test_the_advice_is_given_as_often_as_filters_want(action: Any, expected: int) -> None:
    with torch_world.world(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        for _ in range(3):
            gather()
        assert len(told) == expected
        assert all(one.filename == __file__ for one in told)


def test_each_place_of_a_call_and_each_set_of_filters_is_told() -> None:
    with torch_world.world():
        for _ in range(2):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("default")
                gathering: Callable[..., Any] = dist._all_gather_base
                for _ in range(2):
                    gathering(np.zeros(2), np.ones(2))
                gathering(np.zeros(2), np.ones(2))
                assert len(told) == 2
                warnings.simplefilter("error")
                with pytest.raises(FutureWarning):
                    gathering(np.zeros(2), np.ones(2))


FOLLOWING = """
import warnings
import numpy as np
import shim.frontends.torch.distributed as dist
warnings.simplefilter("error")
dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
dist.all_gather_into_tensor(np.zeros(2), np.ones(2))
for ask in (
    lambda: dist.all_gather_single,
    lambda: __import__("shim.frontends.torch.distributed", fromlist=["record_comm"]).record_comm,
    lambda: dist.barrier(timeout=None),
    lambda: dist.group.WORLD.all_gather_single,
):
    try:
        ask()
    except Exception as error:
        print(type(error).__mro__[1].__name__, error)
"""


def test_what_a_later_release_has_is_not_there_and_the_reason_is_told() -> None:
    ended = preloaded_programs.run_python("-c", FOLLOWING, env={**os.environ, "SHIM_API": "torch-2.11"})
    assert ended.stdout.splitlines() == [
        "UnsupportedError shim.frontends.torch.distributed has no all_gather_single, which came with torch-2.13.0",
        "The frontend follows torch-2.11.0, as SHIM_API says; SHIM_API=torch-2.13.0 asks for the later one.",
        "UnsupportedError shim.frontends.torch.distributed has no record_comm, which came with torch-2.12.1",
        "The frontend follows torch-2.11.0, as SHIM_API says; SHIM_API=torch-2.12.1 asks for the later one.",
        "Exception barrier() got an unexpected keyword argument 'timeout'",
        "Exception 'ProcessGroup' object has no attribute 'all_gather_single'",
    ], ended.stderr
