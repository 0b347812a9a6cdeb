"""Errors of the frontends: shown under the names that users catch, of the framework's own classes where it is loaded, and whole after pickle."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from datetime import timedelta

import pytest
import torch.distributed

import shim.frontends
import shim.frontends.torch.distributed as dist
from shim import errors
from shim.errors import ShimError
from shim.frontends.torch._errors import torch_function

OURS = [getattr(errors, name) for name in errors.__all__]
OF_TORCH = ("DistError", "DistBackendError", "DistNetworkError", "DistStoreError", "QueueEmptyError")
# What torch raises where ours is raised: its own class.
AS_TORCH = {
    errors.EngineError: torch.distributed.DistBackendError,
    errors.PeerLostError: torch.distributed.DistBackendError,
    errors.CollectiveTimeoutError: torch.distributed.DistBackendError,
    errors.StoreError: torch.distributed.DistStoreError,
    errors.StoreTimeoutError: torch.distributed.DistStoreError,
    errors.StoreLostError: torch.distributed.DistNetworkError,
    errors.QueueEmptyError: torch.distributed.QueueEmptyError,
}


def below(kind: type[ShimError]) -> Iterator[type[ShimError]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from below(derived)


def shown(error: ShimError) -> str:
    return traceback.format_exception_only(error)[0].partition(":")[0]


def assert_whole_after_pickle(error: ShimError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (again.args, vars(again)) == (error.args, vars(error))


def test_every_class_of_the_frontends_has_a_public_name() -> None:
    for module in pkgutil.walk_packages(shim.frontends.__path__, "shim.frontends."):
        if module.name != "shim.frontends.paddle" and module.name.rpartition(".")[2].endswith("errors"):
            importlib.import_module(module.name)
    kinds = [kind for kind in set(below(ShimError)) if kind._home[0].startswith("shim.frontends.")]
    assert len(kinds) > 20
    for kind in kinds:
        error = kind("text")
        place, _, name = shown(error).rpartition(".")
        named = getattr(sys.modules[place], name)
        assert isinstance(error, named)
        assert (place, named) == ("shim.errors", named) if named in OURS else name in OF_TORCH
        assert_whole_after_pickle(error)


@pytest.mark.parametrize("kind", AS_TORCH)
def test_an_error_is_of_torchs_own_class(kind: type[ShimError], monkeypatch: pytest.MonkeyPatch) -> None:
    error = torch_function("all_reduce").explain(kind("text"))
    error.note = "kept"  # type: ignore[attr-defined]  # as ranks are
    own = AS_TORCH[kind]
    assert isinstance(error, kind)
    assert isinstance(error, own)
    assert isinstance(error, getattr(dist, own.__name__))
    assert_whole_after_pickle(error)
    sent = pickle.dumps(error)
    monkeypatch.delitem(sys.modules, "torch.distributed")  # on a rank that has not loaded torch
    received = pickle.loads(sent)
    assert not isinstance(received, own)
    assert isinstance(received, kind)
    assert isinstance(received, getattr(dist, own.__name__))
    assert shown(received) == shown(error)
    sent = pickle.dumps(received)
    monkeypatch.undo()
    assert isinstance(pickle.loads(sent), own)


def test_those_with_another_class_in_torch_are_of_none_of_these() -> None:
    for kind in set(OURS) - set(AS_TORCH):
        assert not isinstance(torch_function("all_reduce").explain(kind("text")), torch.distributed.DistError)


class _UsersError(dist.DistBackendError):
    def __init__(self, text: str, code: int = 3) -> None:
        super().__init__(text)
        self.code = code


def test_a_class_that_a_program_derives_keeps_its_name() -> None:
    error = _UsersError("text", code=4)
    assert shown(error) == f"{__name__}._UsersError"
    assert isinstance(error, torch.distributed.DistBackendError)
    assert_whole_after_pickle(error)


@pytest.mark.ranks(2)
def test_an_error_goes_to_other_ranks_as_an_object(rank: int, world_size: int) -> None:
    dist.init_process_group()
    with pytest.raises(torch.distributed.DistStoreError) as caught:
        dist.HashStore().wait([f"key of {rank}"], timedelta(milliseconds=1))
    gathered: list[object] = [None] * world_size
    dist.all_gather_object(gathered, caught.value)
    assert [type(one) for one in gathered] == [type(caught.value)] * world_size
    assert [f"key of {source}" in str(one) for source, one in enumerate(gathered)] == [True] * world_size
