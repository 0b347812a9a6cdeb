"""The frontends' signatures are the recorded ones, and the recorded ones are those of the installed frameworks."""

from __future__ import annotations

import datetime
import importlib
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import shim.frontends
from shim.conformance.signatures import FRONTENDS, Record, Signatures, recorded_of
from shim.conformance.signatures.comparison import compare_frontend, differences, differences_of
from shim.conformance.signatures.exceptions import EXCEPTIONS

# Public names of frontends of which nothing is recorded, each with the reason.
NOT_RECORDED = {
    "shim.frontends.paddle_2.distributed.Group": "the type of every group; Paddle keeps it in communication.group",
    "shim.frontends.paddle_3.distributed.Group": "likewise",
    "shim.frontends.torch.distributed.distributed_c10d.SHRINK_ABORT": "a constant that shrink_group takes",
    "shim.frontends.torch.distributed.distributed_c10d.SHRINK_DEFAULT": "likewise",
    "shim.frontends.torch.distributed.distributed_c10d._world": "the one _World, of which the class is recorded",
    "shim.frontends.torch.distributed._make_nccl_premul_sum": "a function of C++ with overloads",
    "shim.frontends.torch.distributed.distributed_c10d._make_nccl_premul_sum": "likewise",
}

# Modules that a framework named with an underscore, and programs import all the same.
MIRRORED = {"shim.frontends.torch.distributed._functional_collectives"}

INSTALLED = ("mindspore-2.10.0", "paddle-3.3.1", "torch-2.13.0")


def public_modules() -> list[str]:
    names = [module.name for module in pkgutil.walk_packages(shim.frontends.__path__, "shim.frontends.", _reraise)]
    return [name for name in names if name != "shim.frontends.paddle" and is_public(name) and name not in FRONTENDS]


def is_public(name: str) -> bool:
    return "._" not in name or name in MIRRORED


def _reraise(name: str) -> None:
    if name != "shim.frontends.paddle":  # importing that one says which Paddle to choose
        raise


@pytest.mark.parametrize("name", public_modules())
def test_a_frontend_has_the_recorded_signatures(name: str) -> None:
    module = importlib.import_module(name)
    found = recorded_of(name)
    if found is None:
        assert offered(module) == set(), f"nothing is recorded of {name}"
    else:
        assert differences_of(module, *found) == []


@pytest.mark.parametrize("name", public_modules())
def test_a_frontend_offers_what_its_framework_offers(name: str) -> None:
    found = recorded_of(name)
    recorded = set() if found is None else set(found[1])
    unknown = offered(importlib.import_module(name)) - recorded
    allowed = {known for known in NOT_RECORDED if known.rpartition(".")[0] == name}
    assert {f"{name}.{public}" for public in unknown} == allowed


def offered(module: ModuleType) -> set[str]:
    """Return what *module* lists in ``__all__``, its submodules aside."""
    return {name for name in getattr(module, "__all__", ()) if not inspect.ismodule(getattr(module, name))}


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_frontend_has_all_that_is_recorded(frontend: str) -> None:
    results = compare_frontend(frontend)
    assert [f"{result.module}.{name}" for result in results for name in result.absent] == []
    for result in results:
        assert result.equal + len(result.excepted) == result.recorded, result.module


def test_there_are_few_exceptions_and_all_are_in_use() -> None:
    used = [reason for frontend in FRONTENDS for result in compare_frontend(frontend) for reason in result.excepted]
    assert len(used) <= 10
    assert {name.rpartition(".")[2] for name in EXCEPTIONS} == set(used)


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_every_frontend_is_looked_at(frontend: str) -> None:
    assert any(name.startswith(f"{frontend}.") for name in public_modules())


@pytest.mark.parametrize("file", INSTALLED)
def test_the_record_is_what_the_installed_framework_has(file: str) -> None:
    """In a process of its own, where no other framework can get in the way."""
    ended = subprocess.run(
        [sys.executable, "-m", "shim.conformance.signatures", file],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (0, ["as recorded"]), ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("theirs", "function"),
    [
        ("(a, b=None)", lambda a, b=None: (a, b)),
        ("(a, *, b=1)", lambda a, *, b=1: (a, b)),
        ("(*a, **b)", lambda *a, **b: (a, b)),
        ("(arg0, /)", lambda value: value),
        ("(a=timedelta(seconds=1))", lambda a=datetime.timedelta(seconds=1): a),
        ("(a=LIMIT)", lambda a=7: a),
        ("(a=_hidden)", lambda a=8: a),
        ("(a=lambda x: x)", lambda a=lambda x: x: a),
    ],
)
def test_equal_signatures_are_equal(theirs: str, function: Any) -> None:
    assert differences(theirs, inspect.signature(function), {"LIMIT": 7}, {"_hidden": "8"}) == []


@pytest.mark.parametrize(
    ("theirs", "function"),
    [
        ("(a, b)", lambda b, a: (a, b)),
        ("(a, b)", lambda a: a),
        ("(a)", lambda a, b: (a, b)),
        ("(a, b)", lambda a, *, b: (a, b)),
        ("(a, b)", lambda a, b=None: (a, b)),
        ("(a, b=None)", lambda a, b: (a, b)),
        ("(a=True)", lambda a=1: a),
        ("(a=0)", lambda a=False: a),
        ("(a=LIMIT)", lambda a=8: a),
        ("(*a)", lambda a: a),
        ("(a=lambda x: x)", lambda a=lambda x: -x: a),
    ],
)
def test_different_signatures_differ(theirs: str, function: Any) -> None:
    assert len(differences(theirs, inspect.signature(function), {"LIMIT": 7}, {})) > 0


def test_constants_are_compared_by_value() -> None:
    module = ModuleType("framework")
    module.LIMIT = 7
    module.Numbers = type("Numbers", (), {"ONE": 1, "TRUE": 1, "SAME": 1})
    records: dict[str, Record] = {"LIMIT": "= 8", "Numbers": {"ONE": "= 1", "TRUE": "= True", "SAME": "= ONE"}}
    found = differences_of(module, Signatures("framework", "1", {}, {}), records)
    assert found == ["LIMIT: recorded 8, got 7", "Numbers.TRUE: recorded True, got 1"]
