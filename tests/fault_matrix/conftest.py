"""The fault matrix has a command of its own, because it needs an engine that is built for it: see CONTRIBUTING.md."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenarios import Runner

BUILD = os.environ.get("SHIM_FAULT_BUILD")
SLOWEST = pytest.StashKey[dict[tuple[str, int], float]]()  # milliseconds to the last report, by phase and ranks

collect_ignore_glob = [] if BUILD else ["test_*.py"]


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    assert BUILD is not None
    with Runner(Path(BUILD), tmp_path_factory.mktemp("faulty")) as started:
        yield started


@pytest.fixture
def slowest(request: pytest.FixtureRequest) -> dict[tuple[str, int], float]:
    return request.config.stash.setdefault(SLOWEST, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how long after a death the last survivor knew of it."""
    slowest = config.stash.get(SLOWEST, {})
    if not slowest:
        return
    sizes = sorted({size for _, size in slowest})
    terminalreporter.section("milliseconds until the last survivor was told of a death, at most")
    terminalreporter.write_line(f"{'':28}" + "".join(f"{size:>4} ranks" for size in sizes))
    for phase in dict.fromkeys(phase for phase, _ in slowest):
        cells = "".join(f"{slowest[phase, size]:10.1f}" if (phase, size) in slowest else " " * 10 for size in sizes)
        terminalreporter.write_line(f"{phase:28}{cells}")
    terminalreporter.write_line(f"the slowest of all: {max(slowest.values()):.1f}")
