"""The plugins the project's own tests use, and how many calls the tests that passed compared with the real frameworks.

The marks say how many those are: the comparisons happen in rank processes and in processes of the frameworks' own.

``shim.testing`` registers itself when the package is installed.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict

import debian_packages
import mpi_seats
import preloaded_programs
import pytest

from shim.record import FRONTENDS

pytest_plugins = ["pytester"]

NEWEST = ",".join(FRONTENDS.values())


def pytest_configure(config: pytest.Config) -> None:
    os.environ["SHIM_MEASURED"] = "off"  # tests leave nothing in the user's home
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background has ignored, and tests send
    os.environ.setdefault("SHIM_API", NEWEST)  # the newest releases' names, whichever are installed
    if os.environ.get("SHIM_ENGINE") == "mpi":
        mpi_seats.install()
    if hasattr(config, "workerinput"):
        os.setpgid(0, 0)  # tests that look for processes left behind see this worker's alone
    config.addinivalue_line(
        "markers",
        "differential(framework, calls=1): the test makes so many calls on each rank with this project and with the real "
        "framework and compares what they do",
    )
    config.addinivalue_line("markers", "frameworks: the test needs the three frameworks installed")
    config.addinivalue_line(
        "markers",
        "own_ranks: the test starts ranks itself; it is deselected where SHIM_ENGINE is mpi, whose ranks mpirun has to start",
    )
    config.addinivalue_line(
        "markers",
        "programs(*names): the test needs these programs of Debian packages; it is skipped where one is missing, and fails "
        "where CI=true is set",
    )
    config.addinivalue_line(
        "markers",
        "newest: the test calls what only the newest release has; it is deselected where SHIM_API asks for others",
    )
    config.addinivalue_line(
        "markers", "engine(name): the test is about this engine alone; it is deselected where SHIM_ENGINE is another"
    )


# Files in which a fixture of the module runs the real framework, or many programs, for long: each is one worker's, so that it does it once.
ONE_WORKERS_OWN = (
    "tests/conformance/examples/test_kinds_of_examples.py",
    "tests/conformance/examples/running/",
    "tests/core/engines/mpi/test_link.py",
    "tests/frontends/mindspore/differential/",
    "tests/notebook/test_notebook.py",
    "tests/website/",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers ``-n auto`` starts: one more than processors, as tests wait for a fifth of their time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    if config.getoption("dist") != "load":  # which -n alone means
        return None
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0] if nodeid.startswith(ONE_WORKERS_OWN) else nodeid

    return Scheduling(config, log)


class _Failures:
    """Shows each failure at once: a run that is ended early would not show it."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"{report.nodeid} failed ({report.when}):\n{report.longreprtext}\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Failures(terminal))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("programs"):
        debian_packages.need(*mark.args)


def pytest_unconfigure() -> None:
    preloaded_programs.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is about another engine or release than the one that the ranks will have; pytest tells how many those are."""
    chosen = os.environ.get("SHIM_ENGINE") or "shared_memory"
    others = [item for item in items if (mark := item.get_closest_marker("engine")) and mark.args[0] != chosen]
    if chosen == "mpi":
        others += [item for item in items if item.get_closest_marker("own_ranks") and item not in others]
    if os.environ["SHIM_API"] != NEWEST:
        others += [item for item in items if item.get_closest_marker("newest") and item not in others]
    if others:
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    mark = item.get_closest_marker("differential")
    if mark is not None and report.when == "call" and report.passed:
        report.compared = (mark.args[0], mark.kwargs.get("calls", 1))  # what a worker of pytest-xdist reports too
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    compared = defaultdict(list)
    for report in terminalreporter.getreports("passed"):
        if hasattr(report, "compared"):
            framework, calls = report.compared
            compared[framework].append(calls)
    for framework, calls in sorted(compared.items()):
        told = f"{sum(calls)} calls in {len(calls)} tests, as their marks count them"
        terminalreporter.write_line(f"compared with the real {framework}: {told}")
    _tell_ports(terminalreporter)
    skipped = [str(report.longrepr[2]) for report in terminalreporter.getreports("skipped")]
    if told := debian_packages.told(skipped):
        terminalreporter.write_line(told)


def _tell_ports(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how many functions of the APIs were ported and called the same, in how many directions."""
    told = defaultdict(set)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name in ("ported", "exceptions of the port"):
                told[name].update(value)
    if told["ported"]:
        exceptions = f"{len(told['exceptions of the port'])} declared exceptions"
        terminalreporter.write_line(
            f"ported with equal traces: {len(told['ported'])} functions and directions; {exceptions}"
        )
