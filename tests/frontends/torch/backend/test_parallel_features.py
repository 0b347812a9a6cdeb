"""What torch builds on its process groups gives on the engine, by every way in, what it gives on gloo: to the last bit.

gloo is the oracle because a user who changes the backend expects its results; it shares no code with the engine.
"""

from __future__ import annotations

import functools
import socket
from typing import Any

import preloaded_programs
import pytest
from feature_ranks import OF_FOUR, run_features

from shim.launch.pool import RankPool

FEATURES = 50
LACKING = {"collectives": "RuntimeError: Backend gloo does not support alltoall"}  # before torch 2.12
OTHER_WAYS = ("as installed", "SHIM_TORCH_BACKEND=1")


@functools.cache
def results(way: str, size: int, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what each rank's features give."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with RankPool(size, original=preloaded_programs.original()) as pool:
        outcomes = pool.run(run_features, way, port, names, deadline=240.0)
    errors = [f"rank {outcome.rank}: {outcome.error}" for outcome in outcomes if outcome.error is not None]
    assert errors == []
    return [outcome.value for outcome in outcomes]


def assert_close(ours: Any, gloos: Any, what: str) -> None:
    """Three or more addends may be summed in another order."""
    if isinstance(gloos, list):
        assert len(ours) == len(gloos), what
        for mine, its in zip(ours, gloos, strict=True):
            assert_close(mine, its, what)
    else:
        assert ours == pytest.approx(gloos, rel=1e-5, abs=1e-6), what


def assert_as_on_gloo(way: str, size: int, names: tuple[str, ...]) -> None:
    for rank, (ours, gloos) in enumerate(zip(results(way, size, names), results("gloo", size, names), strict=True)):
        assert (ours["group"], gloos["group"]) == ("EngineGroup", "ProcessGroup")
        assert len(ours) == (len(names) or FEATURES) + 1
        told = {name: value for name, value in gloos.items() if isinstance(value, str) and name != "group"}
        assert told in ({}, LACKING)
        for name, value in ours.items():
            if name == "group":
                continue
            if name in told:
                assert not isinstance(value, str), value
                continue
            if value != gloos[name]:
                assert size > 2, f"{name} on rank {rank}: {value}, on gloo {gloos[name]}"
                assert_close(value, gloos[name], f"{name} on rank {rank}")


@pytest.mark.parametrize("way", ["shim", *(pytest.param(way, marks=pytest.mark.nightly) for way in OTHER_WAYS)])
def test_every_feature(way: str) -> None:
    assert_as_on_gloo(way, 2, ())


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["shim", "as installed"])
def test_those_of_four_ranks(way: str) -> None:
    assert_as_on_gloo(way, 4, OF_FOUR)


_SEEN = (
    *("seen_collectives", "seen_ddp_step", "seen_fully_shard_step", "seen_redistribution"),
    *("traced_collectives", "other_modes"),
)


def test_modes_tracers_and_the_profiler_see_what_they_see_on_gloo() -> None:
    assert_as_on_gloo("shim", 2, _SEEN)
