"""Whole scripts, ported to each API and round all of them: they print what they printed and make the same calls, and each entry is explained."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from expected_entries import ENTRIES, ROUNDS, explained
from recorded_runs import Runs, assert_equal_calls

from shim.port import Plan, Ported, port_source
from shim.port.apis import APIS

FOLDER = Path(__file__).with_name("scripts")
SCRIPTS = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("*/*.py"))
pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:torch (2.13 renamed|deprecates):FutureWarning"),
]


IN_GATE = (
    "mindspore/checkpoint",
    "paddle_2/broadcast",
    "paddle_3/pipeline",
    "torch/moe",
)  # go round there, the others at night


def paths_of(script: str) -> list[tuple[str, ...]]:
    """The directions into which *script* is ported: to each other API, and round several."""
    source = script.partition("/")[0]
    return [(target,) for target in APIS if target != source] + [ROUNDS[source]]


@cache
def step(text: str, source: str, target: str) -> Ported:
    return port_source(text, Plan(source, target))


def ported(script: str, path: tuple[str, ...]) -> str | None:
    """The script ported along *path*; None where something is left, as it is expected to be."""
    text, api = (FOLDER / f"{script}.py").read_text(), script.partition("/")[0]
    for target in path:
        result = step(text, api, target)
        assert explained(script, api, target, result.entries, text) == [], path
        if any(entry.kind == "left" for entry in result.entries):
            return None
        text, api = result.text, target
    return text


@pytest.fixture
def texts(script: str, request: pytest.FixtureRequest) -> dict[tuple[str, ...], str | None]:
    """The script on the frontend of its own API, and its ports."""
    own = (script.partition("/")[0],)
    goes_round = script in IN_GATE or request.node.get_closest_marker("nightly")
    return {path: ported(script, path) for path in [own, *paths_of(script)] if len(path) == 1 or goes_round}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_port_prints_and_calls_the_same(
    rank: int, script: str, texts: dict[tuple[str, ...], str | None], tmp_path: Path
) -> None:
    compare_runs(rank, script, texts, tmp_path)


@pytest.mark.nightly
@pytest.mark.ranks(3)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_calls_on_three_ranks(
    rank: int, script: str, texts: dict[tuple[str, ...], str | None], tmp_path: Path
) -> None:
    compare_runs(rank, script, texts, tmp_path)


def compare_runs(rank: int, script: str, texts: dict[tuple[str, ...], str | None], folder: Path) -> None:
    runs = Runs(str(folder), rank)
    (_, own), *ports = texts.items()
    printed, calls = runs.run_script(own or "", f"{script}.py")
    assert printed
    for path, text in ports:
        if text is not None:
            found, its_calls = runs.run_script(text, f"{script}.py")
            assert found == printed, path
            assert assert_equal_calls(calls, its_calls, path) > 5


def test_there_are_ten_scripts_of_every_api() -> None:
    sources = [script.partition("/")[0] for script in SCRIPTS]
    assert len(SCRIPTS) >= 10
    assert sources.count("paddle_2") + sources.count("paddle_3") >= 3
    assert sources.count("mindspore") >= 2
    for script in SCRIPTS:
        assert 50 <= len((FOLDER / f"{script}.py").read_text().splitlines()) <= 300


def test_no_expected_entry_is_of_nothing() -> None:
    assert {script for script, _ in ENTRIES} <= {*SCRIPTS, "*"}
