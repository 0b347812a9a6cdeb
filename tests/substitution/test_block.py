"""``as_installed()``: what the imports of a block see, and that nothing is left of it."""

from __future__ import annotations

import builtins
import contextlib
import sys
import threading
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
import torch

import shim.frontends.torch.distributed as ours
from shim.substitution import as_installed
from shim.substitution.importlib_bootstrap import ImportHook


def test_every_way_to_import_gets_the_frontend() -> None:
    with as_installed():
        import torch as whole
        import torch.distributed
        import torch.distributed as dist
        from torch import distributed as attribute
        from torch.distributed import ReduceOp, all_reduce
        from torch.distributed.nn import functional
    assert dist.all_reduce is attribute.all_reduce is all_reduce is whole.distributed.all_reduce is ours.all_reduce
    assert torch.distributed.all_reduce is ours.all_reduce
    assert ReduceOp is ours.ReduceOp
    assert functional.all_gather.__module__.startswith("shim.frontends.torch")


def test_a_star_import_gets_the_frontends_names_and_the_others() -> None:
    names: dict[str, Any] = {}
    with as_installed():
        exec("from torch.distributed import *", globals(), names)
    assert names["all_gather"] is ours.all_gather


def test_the_framework_stays_what_it_is() -> None:
    before = (builtins.__import__, dict(sys.modules), torch.distributed)
    with as_installed():
        import torch as seen
        import torch.distributed as dist

        assert seen is not torch
        assert seen.Tensor is torch.Tensor
        assert seen.nn.Linear is torch.nn.Linear
        assert seen.nn.functional is torch.nn.functional
        assert dist.Logger is before[2].Logger  # the frontend has none
        assert torch.distributed.all_reduce is not ours.all_reduce
    assert (builtins.__import__, torch.distributed) == (before[0], before[2])
    assert {name: sys.modules[name] for name in before[1]} == before[1]
    import torch as after

    assert after is torch is sys.modules["torch"]


def test_what_is_set_on_a_view_is_set_on_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_installed():
        import torch as seen
    monkeypatch.setattr(seen, "a_name_of_the_test", 1, raising=False)
    assert torch.a_name_of_the_test == seen.a_name_of_the_test == 1
    monkeypatch.undo()
    assert not hasattr(torch, "a_name_of_the_test")
    assert not hasattr(seen, "a_name_of_the_test")
    with pytest.raises(AttributeError, match="torch"):
        seen.no_such_name  # noqa: B018  # the access is what is tested


def test_imports_of_other_modules_are_their_own() -> None:
    other = ModuleType("other")
    with as_installed():
        exec("import torch.distributed as dist", vars(other))
    assert other.dist is torch.distributed


def test_an_exception_ends_it_and_blocks_may_be_nested() -> None:
    original = builtins.__import__
    with contextlib.suppress(ZeroDivisionError), as_installed(), as_installed():
        1 / 0  # noqa: B018  # the error is what is tested
    assert builtins.__import__ is original
    with contextlib.ExitStack() as stack:
        stack.enter_context(as_installed())
        with as_installed():
            pass
        import torch.distributed as dist

        assert dist.all_reduce is ours.all_reduce
    assert builtins.__import__ is original


def test_the_import_function_that_it_finds_is_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before, names = builtins.__import__, []

    def found(name: str, *args: Any, **kwargs: Any) -> ModuleType:
        names.append(name)
        return before(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", found)
    with as_installed():
        exec("import colorsys", vars(ModuleType("other")))
    after = builtins.__import__
    monkeypatch.undo()
    assert after is found
    assert "colorsys" in names  # those of other modules go through it meanwhile


def test_it_is_refused_as_a_decorator() -> None:
    with pytest.raises(TypeError, match="not callable"):
        as_installed()(print)  # type: ignore[operator]  # the mistake is what is tested


def test_a_thread_of_another_module_is_not_affected() -> None:
    other = ModuleType("other")
    with as_installed():
        thread = threading.Thread(target=exec, args=("import torch.distributed as dist", vars(other)))
        thread.start()
        thread.join()
    assert other.dist is torch.distributed


def test_a_view_tells_what_it_is() -> None:
    with as_installed():
        import torch.distributed as dist
    assert repr(dist) == "<view of module 'torch.distributed', on shim.frontends.torch.distributed>"
    assert isinstance(dist, ModuleType)
    assert {"all_reduce", "DeviceMesh"} <= set(dir(dist))
    assert dist.__file__ == torch.distributed.__file__


def test_what_is_assigned_to_a_frontend_s_name_is_seen_and_taken_back() -> None:
    with as_installed():
        import torch.distributed as dist
    with mock.patch.object(dist, "get_rank", return_value=7) as patched:
        assert dist.get_rank() == 7
        assert patched.called
        assert torch.distributed.get_rank is not patched
        assert ours.get_rank is not patched
    assert dist.get_rank is ours.get_rank
    dist.get_rank = ours.get_world_size
    assert dist.get_rank is ours.get_world_size
    del dist.get_rank
    assert dist.get_rank is ours.get_rank


def test_a_function_that_wraps_the_import_while_views_are_given_may_stay() -> None:
    asked: list[Any] = []
    hook, found = ImportHook(lambda names, importer: bool(asked.append(names))), builtins.__import__
    try:
        hook.install()
        builtins.__import__ = lambda *arguments, **keywords: hook(*arguments, **keywords)
        hook.remove()
        hook.install()
        import torch.distributed  # noqa: F401  # it is asked for this one

        assert len(asked) == 1
    finally:
        builtins.__import__ = found
