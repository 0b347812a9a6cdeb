"""NumPy 2 beside MindSpore 2.10, which pip installs: told in one line, and the one error does not reach the program."""

from __future__ import annotations

import sys
import warnings
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest

import shim.frontends.mindspore.mint.distributed as dist
from shim.frontends.mindspore._groups import membership
from shim.frontends.mindspore._groups.numpy_versions import numpy_advice, take_first_error


@pytest.mark.parametrize(
    ("mindspore", "numpy", "is_told"),
    [("2.10.0", "2.4.6", True), ("2.7.1rc1", "2.0.0", True), ("2.10.0", "1.26.4", False), ("2.11.0", "2.4.6", False)],
)
def test_what_to_install(monkeypatch: pytest.MonkeyPatch, mindspore: str, numpy: str, is_told: bool) -> None:
    monkeypatch.setattr(metadata, "version", {"mindspore": mindspore, "numpy": numpy}.__getitem__)
    advice = numpy_advice()
    assert ("pip install 'numpy<2'" in advice) == is_told
    assert "\n" not in advice


def test_nothing_is_told_where_there_is_no_mindspore(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert numpy_advice() == ""


def test_the_first_error_is_taken_with_what_numpy_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used: list[object] = []

    def empty(shape: object) -> None:
        used.append(shape)
        sys.stderr.write("A module that was compiled using NumPy 1.x")
        raise SystemError("returned a result with an exception set")

    monkeypatch.setitem(sys.modules, "mindspore", SimpleNamespace(mint=SimpleNamespace(empty=empty)))
    monkeypatch.setattr(np, "__version__", "1.26.4")
    take_first_error()
    assert not used
    monkeypatch.setattr(np, "__version__", "2.4.6")
    take_first_error()
    assert len(used) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.ranks(2)
def test_rank_0_is_told_when_it_enters_the_world(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore  # noqa: F401  # only where it is loaded

    taken = []
    monkeypatch.setattr(membership, "numpy_advice", lambda: "install this")
    monkeypatch.setattr(membership, "take_first_error", lambda: taken.append(rank))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dist.init_process_group()
    assert [str(each.message) for each in told] == (["install this"] if rank == 0 else [])
    assert taken == [rank]
    dist.destroy_process_group()
