"""What a framework has and its frontend lacks: each name and module of the installed frameworks is there, or its absence is explained."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import mindspore  # noqa: F401  # loads only before the others
import paddle.distributed  # noqa: F401
import pytest
import torch.distributed  # noqa: F401

from shim.errors import UnsupportedError
from shim.frontends._absent import absent_in

# Packages that have modules below them, and ours at their place.
PACKAGES = [
    ("torch.distributed", "torch.distributed"),
    ("torch.distributed.nn", "torch.distributed.nn"),
    ("paddle.distributed", "paddle_3.distributed"),
    ("paddle.distributed.communication", "paddle_3.distributed.communication"),
    ("paddle.distributed.communication.stream", "paddle_3.distributed.communication.stream"),
    ("mindspore.communication", "mindspore.communication"),
    ("mindspore.mint", "mindspore.mint"),
    ("mindspore.mint.distributed", "mindspore.mint.distributed"),
    ("mindspore.ops", "mindspore.ops"),
    ("mindspore.ops.operations", "mindspore.ops.operations"),
    ("mindspore", "mindspore"),
    ("paddle", "paddle_3"),
    ("torch", "torch"),
]
NAMED = [
    ("torch.distributed", "torch.distributed"),
    ("torch.distributed.distributed_c10d", "torch.distributed.distributed_c10d"),
    ("paddle.distributed", "paddle_3.distributed"),
    ("mindspore.mint", "mindspore.mint"),
    ("mindspore.ops", "mindspore.ops"),
]


def ours(path: str) -> str:
    return f"shim.frontends.{path}"


def assert_module_is_explained(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert importlib.util.find_spec(name) is None
    with pytest.raises(ModuleNotFoundError, match=rf"^{module} has no module {last}, which .*\n.*\S") as raised:
        importlib.import_module(name)
    assert isinstance(raised.value, UnsupportedError)
    assert raised.value.name == name
    assert name not in sys.modules


@pytest.mark.parametrize(("real", "place"), PACKAGES)
def test_every_module_is_there_or_explained(real: str, place: str) -> None:
    modules = pkgutil.iter_modules(importlib.import_module(real).__path__)
    there = {module.name for module in modules if not module.name.startswith("__")}
    package = importlib.import_module(ours(place))
    here = {module.name for module in pkgutil.iter_modules(package.__path__)}
    for name in there - here:
        assert_module_is_explained(f"{package.__name__}.{name}")


def own_names(module: ModuleType) -> Iterator[str]:
    """Yield the names in *module*, but for those of other packages that it has imported."""
    framework = module.__name__.partition(".")[0]
    for name in dir(module):
        value = getattr(module, name)
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", framework)
        of_others = f"{home}.".startswith(("torch.utils.", "torch.overrides.", "torch._C._monitor."))
        if name.startswith("__") or hasattr(typing, name) or of_others or name in ("torch", "has_torch_function"):
            continue
        if str(home).partition(".")[0] == framework:
            yield name


@pytest.mark.filterwarnings("ignore:.*reduce_op. is deprecated:FutureWarning")  # it warns of any look at it
@pytest.mark.parametrize(("real", "place"), NAMED)
def test_every_name_is_there_or_explained(real: str, place: str) -> None:
    module = importlib.import_module(ours(place))
    lacking = [name for name in own_names(importlib.import_module(real)) if name not in vars(module)]
    assert lacking
    assert [name for name in lacking if not hasattr(module, name) and absent_in(module.__name__, name) is None] == []


@pytest.mark.parametrize("version", ["2", "3"])
def test_paddles_modules_below_are_explained(version: str) -> None:
    for module in ("sharding", "rpc", "auto_parallel", "checkpoint"):
        assert_module_is_explained(f"shim.frontends.paddle_{version}.distributed.{module}")
    with pytest.raises(ImportError, match=rf"paddle_{version}\.DataParallel\.$"):
        exec(f"from shim.frontends.paddle_{version}.distributed import sharding")


@pytest.mark.parametrize(
    ("statement", "lacking"),
    [
        ("import shim.frontends.torch.distributed.fsdp._fully_shard", "module fsdp"),
        ("from shim.frontends.torch.distributed.fsdp import FullyShardedDataParallel", "module fsdp"),
        ("from shim.frontends.torch.distributed import fsdp", "fsdp"),
        ("import shim.frontends.torch.distributed.tensor.parallel", "module tensor"),
        ("from shim.frontends.torch.distributed.nn import RemoteModule", "RemoteModule"),
        ("from shim.frontends.torch.nn.parallel import DistributedDataParallel", "module nn"),
        ("from shim.frontends.torch import nn", "nn"),
        ("from shim.frontends.paddle_3.distributed.communication.all_reduce import all_reduce", "module all_reduce"),
        ("from shim.frontends.paddle_3 import nn", "nn"),
        ("from shim.frontends.mindspore import train", "train"),
        ("from shim.frontends.mindspore.ops import Add", "Add"),
        ("from shim.frontends.mindspore.ops.operations.comm_ops import _VirtualDiv", "_VirtualDiv"),
        ("from shim.frontends.mindspore.mint.nn import Linear", "module nn"),
    ],
)
def test_programs_that_can_do_without_catch_it_as_import_error(statement: str, lacking: str) -> None:
    with pytest.raises(ImportError, match=f" has no {lacking}, which ") as raised:
        exec(statement)
    assert isinstance(raised.value, UnsupportedError)
    assert str(raised.value.name).startswith("shim.frontends.")


def test_a_stand_in_for_a_missing_module_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("fsdp")
    monkeypatch.setitem(sys.modules, "shim.frontends.torch.distributed.fsdp", stand_in)
    names: dict[str, Any] = {}
    exec("import shim.frontends.torch.distributed.fsdp as one", names)
    exec("from shim.frontends.torch.distributed import fsdp as two", names)
    assert names["one"] is names["two"] is stand_in


def test_what_no_framework_has_is_pythons_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'shim\.frontends\.torch\.distributed\.fdsp'$"):
        importlib.import_module("shim.frontends.torch.distributed.fdsp")
    with pytest.raises(ImportError, match=r"^cannot import name 'fdsp'"):
        exec("from shim.frontends.torch.distributed import fdsp")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named"):
        importlib.import_module("shim.frontends.nothing")
    assert not hasattr(importlib.import_module("shim.frontends.mindspore.ops"), "__wrapped__")


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("from shim.frontends.torch import distribted", "distributed"),
        ("import shim.frontends.torch.distribted.nn", "distributed"),
        ("from shim.frontends.paddle_3 import DataParalel", "DataParallel"),
        ("from shim.frontends.mindspore import comunication", "communication"),
        ("from shim.frontends.mindspore.mint import distribted", "distributed"),
        ("from shim.frontends.mindspore.ops import AllRedduce", "AllReduce"),
        ("from shim.frontends.mindspore.ops.operations import AllRedduce", "AllReduce"),
    ],
)
def test_a_misspelt_name_is_told_the_right_one(statement: str, meant: str) -> None:
    with pytest.raises(ImportError, match=rf"\nIf .* has it, import it from .*\nDid you mean {meant}\?$"):
        exec(statement)


@pytest.mark.parametrize("name", ["{}", "{x}", "{module}", "a b"])
def test_any_text_may_be_asked_for(name: str) -> None:
    for module in ("torch", "torch.distributed", "mindspore.ops", "paddle_2"):
        assert not hasattr(importlib.import_module(f"shim.frontends.{module}"), name)


def test_views_have_the_frameworks_modules() -> None:
    from shim.substitution import as_installed

    with as_installed():
        import torch.distributed.device_mesh as meshes
        from torch.distributed import constants

    names: Any = vars(sys.modules["torch.distributed.constants"])
    assert constants.default_pg_timeout is names["default_pg_timeout"]
    assert meshes.get_rank is importlib.import_module("shim.frontends.torch.distributed").get_rank
