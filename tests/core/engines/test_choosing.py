"""Which engine a group gets, why, and who is told of what cannot be had."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import shim
from shim.core import calls, groups
from shim.core.callers import Caller
from shim.core.collectives import COLLECTIVES
from shim.core.engines.base import Engine
from shim.core.engines.choosing import Choice, choose, choose_in, engine_names
from shim.core.engines.traced import TracedCalls
from shim.core.reduce_ops import ReduceOp
from shim.errors import ArgumentError, MismatchError, UnsupportedError

ME = Caller("test")


@pytest.mark.parametrize(
    ("said", "backend", "choice"),
    [
        (None, "", Choice("shared_memory", "all its ranks are on this host")),
        (None, "gloo", Choice("shared_memory", "all its ranks are on this host")),
        (None, "plain", Choice("plain", "backend='plain' says")),
        (None, "traced:plain", Choice("plain", "backend='traced:plain' says", "traced:")),
        ("", "", Choice("shared_memory", "all its ranks are on this host")),
        ("plain", "gloo", Choice("plain", "SHIM_ENGINE says")),
        ("plain", "plain", Choice("plain", "SHIM_ENGINE says")),
        ("traced:shared_memory", "", Choice("shared_memory", "SHIM_ENGINE says", "traced:")),
    ],
)
def test_the_users_choice_is_taken(
    said: str | None, backend: str, choice: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHIM_ENGINE", raising=False)
    if said is not None:
        monkeypatch.setenv("SHIM_ENGINE", said)
    assert choose(backend) == choice


@pytest.mark.parametrize("said", ["fast", "traced", "traced:fast", "traced:traced:plain", "PLAIN", " plain"])
def test_an_engine_that_is_none_is_refused_with_those_that_are(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIM_ENGINE", said)
    engines = ["shared_memory", "plain", "c10d", "mpi", "hierarchical"]
    assert engine_names() == [*engines, *(f"traced:{engine}" for engine in engines)]
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


@pytest.mark.ranks(2)
def test_traced_calls_are_counted_and_explained(world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIM_ENGINE", raising=False)
    try:
        groups.enter_world(ME, "test", timeout=20.0)
        traced = groups.new_group(ME, backend="traced:plain")
        tensor = np.full(3, traced.rank + 1.0)
        for _ in range(3):
            calls.barrier(ME, traced, now=True)
        work = calls.all_reduce(ME, traced, tensor, tensor, ReduceOp.SUM)
        work.start()
        work.wait()
        assert tensor.tolist() == [3.0] * 3
        world, other = shim.explain().split("\n")
        assert "engine traced:plain, as backend='traced:plain' says; calls: all_reduce 1, barrier 3" in other
        assert "traced" not in world
    finally:
        groups.close_world()


@pytest.mark.parametrize("row", COLLECTIVES, ids=lambda row: row.name)
def test_a_wrapper_hands_every_collective_on(row: object) -> None:
    class Below:
        def __getattr__(self, name: str) -> object:
            return lambda *call, **how: (name, call, how)

    traced = TracedCalls(Below())  # type: ignore[arg-type]
    name = row.name  # type: ignore[attr-defined]
    assert getattr(traced, name)(1, 2, now=True) == (name, (1, 2), {"now": True})
    assert traced.counts == {name: 1}
    assert name in vars(Engine)


def test_core_can_be_imported_where_the_native_module_is_missing() -> None:
    program = """
import importlib, pkgutil, sys
sys.modules["shim._native"] = None
import shim.core
asked = ("shim.core.engines.", "shim.core.reports.", "shim.core.shared_tensors.", "shim.core.tensors.repeats")
for module in pkgutil.walk_packages(shim.core.__path__, "shim.core."):
    if not module.name.startswith(asked) or module.name.endswith((".choosing", ".place", ".absent", ".traced", ".defaults")):
        importlib.import_module(module.name)
        print(module.name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert {"shim.core.calls", "shim.core.groups.world", "shim.core.job.rendezvous"} <= set(done.stdout.split())
