"""``shim conformance tables``: what it prints and exits with."""

from __future__ import annotations

import collections
import io
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from shim.cli.conformance import conformance
from shim.conformance.kinds import KINDS, Selection
from shim.conformance.progress import progress_bar
from shim.conformance.report import print_tables
from shim.conformance.runner import Failure, Result
from shim.conformance.tables import cells
from shim.conformance.tables.cells import DTYPES, OPERATIONS, Sight, planned, run_of
from shim.conformance.tables.columns import CELLS

EVERYTHING = Selection(KINDS, (), ())
ONLY_NUMPY = Selection(("numpy",), (), ())


def a_run(selection=EVERYTHING, errors=None):
    """Return a run in which every cell passes but those named in *errors*."""
    run = run_of(CELLS, selection)
    for cell, kind in planned(CELLS, selection):
        failures = [Failure(rank, "call", "", "", text) for rank, text in (errors or {}).get(cell.name, ())]
        run.results.append(Result(cell, kind, 0.25, tuple(failures), dict.fromkeys((0, 1), Sight(2, ()))))
    return run


def printed(run, width=120):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_tables(run, console)
    return console.file.getvalue()


def test_the_tables_fit_a_log_and_cut_nothing_off():
    text = printed(a_run())
    assert max(map(len, text.splitlines())) <= 120
    assert "…" not in text
    for name in (*OPERATIONS.rows, *DTYPES.rows):
        assert name.split()[-1] in text


def test_ours_stands_above_the_framework_s_own():
    lines = [line.split() for line in printed(a_run()).splitlines()]
    first = lines.index(["barrier", *["yes"] * 5])
    assert lines[first + 1] == ["(yes)", "(yes)", "(yes)", "(unsupported)", "(unsupported)"]
    first = lines.index(["bool", *["yes"] * 7])
    assert lines[first + 1][:3] == ["(yes)", "(yes)", "(RuntimeError)"]
    assert ["stream,", "calc", "stream", "n/a", "yes", "n/a", "n/a", "n/a"] in lines


def test_float8_and_other_tensors_are_said():
    text = printed(a_run())
    float8 = text[text.index("float8_e4m3fn") :]
    assert " ".join(float8.split()[:8]) == "float8_e4m3fn, moves; moves; arithmetic yes arithmetic yes yes"
    assert text[text.index("uint16,") : text.index("float16")].split()[1:8] == ["yes", "yes,", "numpy", *["yes"] * 4]


def test_everything_with_numpy_alone_says_what_was_not_run():
    text = printed(a_run(ONLY_NUMPY))
    assert text[text.index("bfloat16") :].split()[1:15] == ["not", "run"] * 7
    last = text.splitlines()[-1]
    assert last.startswith("partial, with numpy tensors alone: 146 cells, ")
    assert "all of these as they should be, 14 not run, because the tensors at hand have no such dtype" in last


@pytest.mark.parametrize(("selection", "partial"), [(EVERYTHING, False), (Selection(("torch",), (), ()), True)])
def test_a_verdict_of_some_kinds_alone_says_so(selection, partial):
    run = a_run(selection)
    assert run.passed
    assert run.not_run == 0
    assert printed(run).splitlines()[-1].startswith("partial, with torch tensors alone: 160 cells, ") is partial


def test_cells_that_nobody_left_out_on_purpose_have_to_run():
    run = a_run(Selection(("numpy",), (), ("torch", "paddle", "mindspore")))
    assert all(result.passed for result in run.results)
    assert not run.passed
    assert "partial" not in printed(run)
    assert "14 not run" in printed(run)


def test_a_failure_is_told_once_in_full_with_its_places():
    gone = {cell.name: ((0, "Traceback [bold] of it"), (1, "Traceback [bold] of it")) for cell in CELLS[:8]}
    gone[CELLS[8].name] = ((1, "gather to 0: 2 was expected"),)
    text = printed(a_run(errors=gone))
    assert text.count("FAILED") == 9
    assert text.count("Traceback [bold] of it") == 1
    assert "failed: operations, all_reduce, torch, torch tensors, ranks 0, 1 of 2" in text
    assert "the same in operations, broadcast, torch, torch tensors, ranks 0, 1 of 2" in text
    assert "and in 3 more places" in text
    assert "failed: operations, gather and scatter, torch, torch tensors, rank 1 of 2" in text
    assert "gather to 0: 2 was expected" in text
    assert "160 cells, 320 calls checked on each of 2 ranks, 9 failed, 11 n/a" in text


def test_a_missing_kind_is_told():
    text = printed(a_run(Selection(("numpy",), ("torch",), ())))
    assert "missing: torch was asked for and is not installed" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_a_line_for_every_kind_or_a_bar(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    run = a_run()
    calls = planned(CELLS, EVERYTHING)
    with progress_bar(calls, console, "cells", " tensors", lambda cell: cell.name) as tell:
        for result in run.results:
            tell(result)
    counts = collections.Counter(kind for _, kind in calls)
    lines = [f"{kind} tensors: {count} cells run" for kind, count in counts.items()]
    text = console.file.getvalue()
    assert [line in text for line in lines] == [not terminal] * 4


def shim_conformance(*arguments):
    return CliRunner().invoke(conformance, list(arguments), env={"COLUMNS": "120"})


@pytest.mark.parametrize(("errors", "status"), [({}, 0), ({CELLS[0].name: ((0, "an error"),)}, 1)])
def test_the_exit_status_says_whether_all_passed(monkeypatch, errors, status):
    seen = []

    def run_cells(all_cells, selection, on_result):
        seen.append((all_cells, selection))
        return a_run(selection, errors)

    monkeypatch.setattr(cells, "run_cells", run_cells)
    result = shim_conformance("tables", "--tensors", "numpy")
    assert result.exit_code == status, result.output
    assert seen == [(CELLS, ONLY_NUMPY)]


def test_the_command_tells_of_progress_with_numpy():
    command = [sys.executable, "-m", "shim", "conformance", "tables", "--tensors", "numpy"]
    child = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert child.returncode == 0, child.stdout + child.stderr
    assert child.stderr == ""
    assert "numpy tensors: 146 cells run" in child.stdout
    last = child.stdout.splitlines()[-1]
    assert last.startswith("partial, with numpy tensors alone: 146 cells")
    assert ", 14 not run, because the tensors at hand have no such dtype" in last
