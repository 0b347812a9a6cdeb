"""Programs drawn at random, ported in every direction: where nothing is left, the port computes what the program did, by the same calls."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import preloaded_programs
import pytest
from compared_programs import differing
from drawn_programs import Drawn, drawn
from hypothesis import HealthCheck, Phase, given, seed, settings

from shim.launch.pool import RankPool
from shim.port import Plan, Ported, port_source
from shim.port.apis import APIS

DEADLINE = 60.0  # seconds, after which a program hangs
# The rules by which a place of these programs may be left.
LEFT = {
    *(
        "any-source",
        "function-as-value",
        "list-may-be-empty",
        "may-be-tensor",
        "needs-a-statement",
        "no-equivalent",
        "no-import",
    ),
    *("tensor-or-list", "unpacked-arguments", "views-as-outputs"),
}
NIGHTLY = 300  # programs
MANY = [pytest.param(NIGHTLY, marks=pytest.mark.nightly)]


class Ranks:
    """Runs programs on *size* ranks, which are started anew after a program that failed: it may have left anything behind."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: RankPool | None = None

    def assert_same(self, source: str, ports: Mapping[str, str], within: float = 0.0) -> None:
        if self._pool is None:
            self._pool = RankPool(self._size, original=preloaded_programs.original())
        outcomes = self._pool.run(differing, source, ports, within, deadline=DEADLINE)
        if any(outcome.error or outcome.value for outcome in outcomes):
            self.close()
        assert not any(outcome.error for outcome in outcomes), f"{source}\n{outcomes[0].error}"
        for outcome in outcomes:
            assert not outcome.value, "\n".join(f"{ports[name]}\n{what}" for name, what in outcome.value.items())

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = None


@pytest.fixture(scope="module")
def ranks(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    started = Ranks(request.param)
    yield started
    started.close()


def run_many(check: Callable[[Drawn], None], source: str, programs: int, *, tensors: bool = False) -> None:
    """Draw so many programs and *check* each: always the same few in the gate, and others every night."""
    number = 0 if programs < NIGHTLY else random.randrange(1 << 32)
    print(f"drawn with seed {number}")
    how = settings(
        max_examples=programs,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),  # a program takes long, and fills many choices
    )
    seed(number)(how(given(drawn(source, tensors))(check)))()


def complete(found: Mapping[str, Ported], told: Counter[str]) -> dict[str, str]:
    """Return the texts that compute the same, and count these and the others: nothing is left in them, and no group of MindSpore's is destroyed early."""
    texts = {
        name: one.text
        for name, one in found.items()
        if all(entry.kind != "left" and entry.rule != "groups-of-same-ranks" for entry in one.entries)
    }
    told.update(run=len(texts), left=len(found) - len(texts))
    rules = {entry.rule for one in found.values() for entry in one.entries if entry.kind == "left"}
    assert rules <= LEFT, rules - LEFT
    return texts


@pytest.mark.frameworks
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.nightly)], indirect=True)
@pytest.mark.parametrize("programs", [6, *MANY])
@pytest.mark.parametrize("source", list(APIS))
def test_ports_make_the_same_calls(ranks: Ranks, source: str, programs: int) -> None:
    told = Counter[str]()

    def check(program: Drawn) -> None:
        found = {target: port_source(program.text, Plan(source, target)) for target in APIS if target != source}
        ranks.assert_same(program.text, complete(found, told))

    run_many(check, source, programs)
    assert told["run"] > told["left"], told


@pytest.mark.frameworks
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)], indirect=True)
@pytest.mark.parametrize("programs", [4, *MANY])
def test_ports_of_tensors_compute_the_same(ranks: Ranks, programs: int) -> None:
    told = Counter[str]()

    def check(program: Drawn) -> None:
        ports = complete(ported_tensors(program.text, "torch"), told)
        for api, text in list(ports.items()):
            further = complete(ported_tensors(text, api), told)
            ports.update({f"{api} to {target}": other for target, other in further.items()})
        ranks.assert_same(program.text, ports, 2e-6)

    run_many(check, "torch", programs, tensors=True)
    assert told["run"] > told["left"], told


def ported_tensors(text: str, source: str) -> dict[str, Ported]:
    return {target: port_source(text, Plan(source, target, scope="files")) for target in APIS if target != source}
