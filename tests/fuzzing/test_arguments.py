"""Every public function with any arguments, on two ranks: it does what it does or raises what is documented, and the world goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import preloaded_programs
import pytest
from fuzzed_rank import Call, Ended, carry_out
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from strategies import EXCLUDED, MODULES, calls, functions_of

from shim.launch.pool import RankPool

DEADLINE = 30.0  # seconds, after which a call hangs
USUAL = 20  # calls of a module
AT_A_TIME = 500  # of a longer run


@pytest.fixture
def ranks(request: pytest.FixtureRequest) -> Iterator[RankPool]:
    """Ranks that import one framework, as users' do, where there is time for it, and else have all."""
    has_time = request.config.getoption("--fuzz-seconds") > 0
    with RankPool(2, original=None if has_time else preloaded_programs.original()) as pool:
        yield pool


@pytest.mark.parametrize("module", MODULES)
def test_any_arguments(ranks: RankPool, module: str, request: pytest.FixtureRequest) -> None:
    until = time.monotonic() + request.config.getoption("--fuzz-seconds")
    examples = AT_A_TIME if until > time.monotonic() else USUAL
    number = 0
    while True:
        run = given(st.sampled_from(functions_of(module)).flatmap(lambda name: calls(module, name)))(
            lambda by_rank: check(ranks, by_rank)
        )
        drawn = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )(run)
        seed(number)(drawn)()
        if time.monotonic() >= until:
            return
        number = random.randrange(1 << 32)


def check(ranks: RankPool, by_rank: tuple[Call, ...]) -> None:
    outcomes = ranks.run(carry_out, by_rank, deadline=DEADLINE)
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)  # no rank died, and none was late
    ended: list[Ended] = [outcome.value for outcome in outcomes]
    for one in ended:
        assert one.is_documented, one
    if len(by_rank) == 1 and not any(one.has_lost_group or one.world == "destroyed" for one in ended):
        assert [one.world for one in ended] == [""] * len(ended), ended


def test_what_is_excluded_is_there() -> None:
    offered = {name for module in MODULES for name in dir(__import__(module, fromlist=["x"]))}
    assert set(EXCLUDED) <= offered
