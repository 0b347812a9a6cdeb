"""The frontends' signatures are the recorded ones, and the recorded ones are those of the installed frameworks."""

from __future__ import annotations

import datetime
import importlib
import inspect
import io
import os
import pkgutil
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from preloaded_programs import run_python
from rich.console import Console

import shim.frontends
from shim.conformance.signatures import report
from shim.conformance.signatures.comparison import (
    EXCEPTIONS,
    NOT_REPEATED,
    compare_frontend,
    differences,
    differences_of,
)
from shim.frontends.paddle_3.distributed import fleet
from shim.record import FRONTENDS, Record, Signatures, recorded_of

# Public names of frontends of which nothing is recorded, each with the reason.
NOT_RECORDED = {
    "shim.frontends.mindspore.nn.DistributedGradReducer": "a Cell; test_mindspore_training.py compares it with MindSpore's",
    "shim.frontends.paddle_2.distributed.Group": "the type of every group; Paddle keeps it in communication.group",
    "shim.frontends.paddle_3.distributed.Group": "likewise",
    **{
        f"shim.frontends.{paddle}.distributed.{name}": "private; tests/substitution/test_questions.py compares its answers"
        for paddle in ("paddle_2", "paddle_3")
        for name in (
            "collective._get_group_map",
            "collective._get_group_map_by_name",
            "communication.group._GroupManager",
            "parallel_helper._is_data_parallel_mode",
            "parallel_helper._is_parallel_ctx_initialized",
        )
    },
    **{
        f"shim.frontends.paddle_3.distributed.fleet.{name}": "in test_paddle_fleet.py, as Paddle's are methods"
        for name in fleet.__all__
    },
    "shim.frontends.torch.distributed.distributed_c10d.SHRINK_ABORT": "a constant that shrink_group takes",
    "shim.frontends.torch.distributed.distributed_c10d.SHRINK_DEFAULT": "likewise",
    "shim.frontends.torch.distributed.distributed_c10d._world": "the one _World, of which the class is recorded",
    "shim.frontends.torch.distributed._get_process_group_name": "recorded in distributed_c10d, of which torch.distributed takes it",
    "shim.frontends.torch.distributed._make_nccl_premul_sum": "a function of C++ with overloads",
    "shim.frontends.torch.distributed._rank_not_in_group": "as _get_process_group_name",
    "shim.frontends.torch.distributed.distributed_c10d._make_nccl_premul_sum": "likewise",
}

# Modules that a framework named with an underscore, and programs import all the same.
MIRRORED = {"shim.frontends.torch.distributed._functional_collectives"}

# Of each framework, releases that its frontend can follow: a process has one of each.
FOLLOWED = (
    ("torch-2.9", "paddle-3.0", "mindspore-2.7"),
    ("torch-2.10", "paddle-3.1", "mindspore-2.8"),
    ("torch-2.11", "paddle-3.2", "mindspore-2.9"),
    ("torch-2.12", "paddle-3.3", "mindspore-2.10"),
)

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
        unknown = {f"{name}.{public}" for public in offered(module)}
        assert unknown <= set(NOT_RECORDED), f"nothing is recorded of {name}"
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
        members = sum("." in name for name in result.excepted)
        assert result.equal + len(result.excepted) - members == result.recorded, result.module
        assert result.equal_members + members == result.members, result.module


@pytest.mark.parametrize("releases", FOLLOWED, ids=" ".join)
def test_a_frontend_has_what_the_release_has_that_it_follows_and_no_more(releases: tuple[str, ...]) -> None:
    """In a process of its own, as a frontend follows one release."""
    code = """
from shim.conformance.signatures.comparison import compare_frontend
from shim.record import FRONTENDS, recorded_of
from shim.record.releases import followed_by
from sys import modules

for frontend in FRONTENDS:
    release = followed_by(frontend).record
    for result in compare_frontend(frontend):
        newest, there = recorded_of(result.module), recorded_of(result.module, release)
        more = {name for name in newest[1] if hasattr(modules[result.module], name)} - {*there[1]}
        for told in (*result.absent, *result.different, *more):
            print(release, result.module, told)
"""
    ended = run_python("-c", code, env={**os.environ, "SHIM_API": ",".join(releases)})
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


def test_there_are_few_exceptions_and_all_are_in_use() -> None:
    used = [name for frontend in FRONTENDS for result in compare_frontend(frontend) for name in result.excepted]
    assert len(used) <= 11
    assert {name.rpartition(".")[2] for name in EXCEPTIONS} | set(NOT_REPEATED) == set(used)


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_every_frontend_is_looked_at(frontend: str) -> None:
    assert any(name.startswith(f"{frontend}.") for name in public_modules())


@pytest.mark.nightly  # neither the record nor the installed versions change by themselves
@pytest.mark.parametrize("file", INSTALLED)
def test_the_record_is_what_the_installed_framework_has(file: str) -> None:
    """In a process of its own, where no other framework can get in the way."""
    ended = subprocess.run(
        [sys.executable, "-m", "shim.conformance.signatures.comparison", file],
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
        ("(a=...)", lambda a=None: a),
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
        ("(a=...)", lambda a: a),
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


class Base:
    def inherited(self, key):
        return key


class Group(Base):
    LIMIT = 3

    def __init__(self, rank):
        self.id = rank

    @property
    def name(self):
        return "default"

    @staticmethod
    def alone(self):
        return self

    @classmethod
    def made(cls, rank):
        return cls(rank)


WHOLE = {
    "__init__": "(rank)",
    "LIMIT": "= 3",
    "name": "property",
    "alone": "(self)",
    "made": "(rank)",
    "inherited": "(key)",
}


def compared(record: Record, thing: Any) -> list[str]:
    module = ModuleType("framework")
    module.Group = thing
    return differences_of(module, Signatures("framework", "1", {}, {}), {"Group": record})


def test_equal_members_are_equal() -> None:
    assert compared({"__kind__": "c++", **WHOLE}, Group) == []


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"get_group_rank": "(rank)"}, "Group.get_group_rank: recorded (rank), and absent"),
        ({"backend": "property"}, "Group.backend: recorded property, and absent"),
        ({"barrier": "method"}, "Group.barrier: recorded method, and absent"),
        ({"SUM": "value"}, "Group.SUM: recorded value, and absent"),
        ({"LAST": "= 3"}, "Group.LAST: recorded = 3, and absent"),
        ({"made": "property"}, "Group.made: recorded as property, got"),
        ({"LIMIT": "(rank)"}, "Group.LIMIT: recorded (rank), got 3"),
        ({"name": "(rank)"}, "Group.name: recorded (rank), got <property"),
        ({"LIMIT": "method"}, "Group.LIMIT: recorded as method, got 3"),
        ({"LIMIT": "class"}, "Group.LIMIT: recorded as class, got 3"),
        ({"inherited": "value"}, "Group.inherited: recorded as value, got"),
        ({"inherited": "(key, timeout)"}, "Group.inherited: recorded (key, timeout), got"),
        ({"alone": "()"}, "Group.alone: recorded (), got (self)"),
        ({"__init__": "()"}, "Group.__init__: recorded (), got (rank)"),
        ("exception", "Group: recorded as exception, got"),
        ("value", "Group: recorded as value, got"),
    ],
)
def test_a_member_that_is_absent_or_something_else_is_told(record: Record, told: str) -> None:
    [line] = compared(record, Group)
    assert line.startswith(told)


def test_a_class_that_is_none_is_told() -> None:
    [line] = compared(WHOLE, lambda rank: rank)
    assert line.startswith("Group: recorded a class, got <function")


def test_a_function_that_cannot_be_called_is_told() -> None:
    assert compared("(rank)", 3) == ["Group: recorded (rank), got 3"]


RAN = subprocess.CompletedProcess([], 0, "as recorded", "")


def ends_late(*_: Any, **__: Any) -> None:
    raise subprocess.TimeoutExpired("python", 240)


@pytest.mark.parametrize(
    ("installed", "run", "passed", "told"),
    [
        (None, None, True, "0 of 4 records made again"),
        ("0.1", None, True, "0 of 4 records made again"),
        ("2.15.0", lambda *_, **__: RAN, True, "1 of 4 records made again from what is installed, 1 of them equal"),
        ("2.15.0", ends_late, False, "1 of 4 records made again from what is installed, 0 of them equal"),
    ],
)
def test_a_record_that_is_not_made_again_is_counted(
    monkeypatch: pytest.MonkeyPatch, installed: str | None, run: Any, passed: bool, told: str
) -> None:
    util = SimpleNamespace(find_spec=lambda name: installed)
    monkeypatch.setattr(report, "importlib", SimpleNamespace(util=util))
    monkeypatch.setattr(report, "version_of", lambda name: installed)
    monkeypatch.setattr(report.subprocess, "run", run)
    console = Console(file=io.StringIO(), width=120)
    assert report.print_comparison(console) is passed
    text = console.file.getvalue()
    assert told in text
    assert "not made again: mindspore 2.10.0, paddle 2.6.2, paddle 3.3.1" in text
    assert ("torch 2.15.0: not compared within 240 s" in text) is not passed
