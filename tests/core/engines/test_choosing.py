"""Which engine a group gets, why, and who is told of what cannot be had."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from shim.core import groups
from shim.core.callers import Caller
from shim.core.engines.choosing import Choice, choose, choose_in, engine_names
from shim.errors import ArgumentError, MismatchError, UnsupportedError

ME = Caller("test")


@pytest.mark.parametrize(
    ("said", "backend", "choice"),
    [
        (None, "", Choice("shared_memory", "all its ranks are on this host")),
        (None, "gloo", Choice("shared_memory", "all its ranks are on this host")),
        (None, "plain", Choice("plain", "backend='plain' says")),
        ("", "", Choice("shared_memory", "all its ranks are on this host")),
        ("plain", "gloo", Choice("plain", "SHIM_ENGINE says")),
        ("plain", "plain", Choice("plain", "SHIM_ENGINE says")),
    ],
)
def test_the_users_choice_is_taken(
    said: str | None, backend: str, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHIM_ENGINE", raising=False)
    if said is not None:
        monkeypatch.setenv("SHIM_ENGINE", said)
    assert choose(backend) == choice


@pytest.mark.parametrize("said", ["fast", "traced:plain", "PLAIN", " plain"])
def test_an_engine_that_is_none_is_refused_with_those_that_are(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_ENGINE", said)
    assert engine_names() == ["shared_memory", "plain", "c10d", "mpi", "hierarchical"]
    with pytest.raises(ArgumentError, match=re.escape(f"one of {', '.join(engine_names())}, got {said!r}")):
        choose()


@pytest.mark.parametrize("backend", ["c10d", "hierarchical"])
def test_a_network_engine_is_refused_in_a_world_without_connections(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHIM_ENGINE", raising=False)
    with pytest.raises(
        UnsupportedError, match=f"'{backend}' needs a world .*\nSet SHIM_ENGINE={backend} for all ranks"
    ):
        choose_in(choose(), backend, (0, 0))


def test_two_choices_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_ENGINE", "plain")
    with pytest.raises(ArgumentError, match="SHIM_ENGINE=plain contradicts the backend 'shared_memory'"):
        choose("shared_memory")


@pytest.mark.ranks(2)
def test_ranks_that_choose_differently_are_told_when_they_meet(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_ENGINE", ["plain", "shared_memory"][rank])
    with pytest.raises(MismatchError, match=r"(?s)rank 0: .*, engine plain\n  rank 1: .*, engine shared_memory"):
        groups.enter_world(ME, "test", timeout=20.0)


def test_core_can_be_imported_where_the_native_module_is_missing() -> None:
    program = """
import importlib, pkgutil, sys
sys.modules["shim._native"] = None
import shim.core
asked = ("shim.core.engines.", "shim.core.reports.", "shim.core.shared_tensors.", "shim.core.tensors.repeats")
for module in pkgutil.walk_packages(shim.core.__path__, "shim.core."):
    if not module.name.startswith(asked) or module.name.endswith((".choosing", ".place", ".absent", ".defaults")):
        importlib.import_module(module.name)
        print(module.name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert {"shim.core.calls", "shim.core.groups.world", "shim.core.job.rendezvous"} <= set(done.stdout.split())
