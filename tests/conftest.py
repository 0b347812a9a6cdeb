"""The plugins the project's own tests use, and how many calls the tests that passed compared with the real frameworks.

The marks say how many those are: the comparisons happen in rank processes and in processes of the frameworks' own.

``shim.testing`` registers itself when the package is installed.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

pytest_plugins = ["pytester"]

_COMPARED = pytest.StashKey[dict[str, list[int]]]()


def pytest_configure(config: pytest.Config) -> None:
    os.environ["SHIM_MEASURED"] = "off"  # tests leave nothing in the user's home
    config.addinivalue_line(
        "markers",
        "differential(framework, calls=1): the test makes so many calls on each rank with this project and with the real "
        "framework and compares what they do",
    )
    config.addinivalue_line("markers", "frameworks: the test needs the three frameworks installed")
    config.stash[_COMPARED] = defaultdict(list)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    mark = item.get_closest_marker("differential")
    if mark is not None and report.when == "call" and report.passed:
        item.config.stash[_COMPARED][mark.args[0]].append(mark.kwargs.get("calls", 1))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for framework, calls in sorted(config.stash[_COMPARED].items()):
        told = f"{sum(calls)} calls in {len(calls)} tests, as their marks count them"
        terminalreporter.write_line(f"compared with the real {framework}: {told}")
