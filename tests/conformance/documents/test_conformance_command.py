"""``shim conformance`` with the documents' cases: what it prints, writes and exits with."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pty
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from shim.cli.conformance import conformance
from shim.conformance import kinds, plan, report
from shim.conformance.documents import pages
from shim.conformance.documents.pages import DOCUMENTS
from shim.conformance.kinds import KINDS, Selection
from shim.conformance.plan import FRAMEWORKS
from shim.conformance.runner import Failure, Result, Run

CASES = f"{DOCUMENTS[0].name}: *"
NUMBER_OF_CASES = {kind: sum(case.is_for(kind) for page in DOCUMENTS for case in page.cases) for kind in KINDS}


@pytest.fixture(autouse=True)
def _cases_alone(monkeypatch):
    """No framework is installed that would have examples to run beside the cases."""
    monkeypatch.setattr(plan, "is_installed", lambda name: False)


def shim_conformance(*arguments, width="200"):
    """Run the command in this process, with output that is no terminal."""
    return CliRunner().invoke(conformance, list(arguments), env={"COLUMNS": width})


def printed(run, width=200, pages=DOCUMENTS[:1]):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    report.print_report(run, pages, console)
    return console.file.getvalue()


def a_run(selection, failures=(), kind="numpy"):
    case = DOCUMENTS[0].cases[0]
    return Run((case,), selection, [Result(case, kind, 0.25, tuple(failures))])


def test_numpy_passes_and_json_says_everything(tmp_path):
    file = tmp_path / "result.json"
    result = shim_conformance("--tensors", "numpy", "--json", str(file))
    assert result.exit_code == 0, result.output
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["schema"] == 3
    assert told["passed"] is True
    assert list(told["tensors"]) == ["numpy"]
    assert [column["key"] for column in told["columns"]] == ["shim numpy shared_memory"]
    assert [one["name"] for one in told["examples"]] == [
        f"{page.name}: {case.name}" for page in DOCUMENTS for case in page.cases if case.is_for("numpy")
    ]
    for one in told["examples"]:
        cell = one["cells"]["shim numpy shared_memory"]
        assert (cell["verdict"], cell["failures"]) == ("pass", [])
        assert sorted(rank for seen in cell["seen"] for rank in seen["ranks"]) == list(range(one["ranks"]))
        assert one["code"][0][1].startswith("def ")
    for page in DOCUMENTS:
        assert page.name in result.output
        for note in page.notes:
            assert note.case in result.output
    assert f"5 documents, {NUMBER_OF_CASES['numpy']} runs of cases, all passed with numpy" in result.output


def test_one_document(tmp_path):
    file = tmp_path / "result.json"
    name = "paddle.distributed.alltoall_single"
    result = shim_conformance("--tensors", "numpy", "--example", name, "--json", str(file))
    assert result.exit_code == 0, result.output
    told = json.loads(file.read_text(encoding="utf-8"))
    assert {one["name"].partition(":")[0] for one in told["examples"]} == {name}
    assert "1 document, " in result.output


def test_missing_tensors_that_were_asked_for_fail(monkeypatch, tmp_path):
    monkeypatch.setattr(kinds, "is_installed", lambda kind: False)
    file = tmp_path / "result.json"
    result = shim_conformance("--tensors", "torch", "--json", str(file))
    assert result.exit_code == 1
    assert "missing: torch was asked for and is not installed" in result.output
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["passed"] is False
    assert told["examples"] == []


def test_frameworks_that_are_absent_and_not_asked_for_are_shown():
    text = printed(a_run(Selection(("numpy",), (), ("torch", "paddle", "mindspore"))))
    assert text.count("not installed") == 3
    assert "all passed with numpy" in text


def test_failures_are_shown_in_full():
    differs = Failure(2, "documented", "[0], [4]", "[0], [5]", "tensor 1: 1 of 1 elements differ")
    died = [Failure(rank, "call", "", "", "Traceback of a rank that died") for rank in (0, 1)]
    text = printed(a_run(Selection(("numpy",), (), ()), [differs, *died]))
    assert "0 of 1 passed" in text
    assert "failed: torch.distributed.all_to_all, case 'equal parts', numpy tensors, ranks 0, 1 of 4" in text
    assert "failed: torch.distributed.all_to_all, case 'equal parts', numpy tensors, rank 2 of 4" in text
    assert "against the document: tensor 1: 1 of 1 elements differ" in text
    assert "expected: [0], [4]" in text
    assert "seen:     [0], [5]" in text
    assert text.count("Traceback of a rank that died") == 1
    assert "1 of 1 runs of cases failed with numpy" in text


def test_many_failures_do_not_drown_the_summary():
    failures = [Failure(rank, "call", "", "", f"Traceback {rank}") for rank in range(100)]
    text = printed(a_run(Selection(("numpy",), (), ()), failures))
    assert text.count("failed: ") == 12
    assert "and 88 other failures; --json writes all of them" in text


@pytest.mark.parametrize("width", [80, 60])
def test_a_narrow_terminal_shows_whole_names_and_heads(width):
    run = a_run(Selection(KINDS[:3], (), KINDS[3:]))
    run = dataclasses.replace(run, versions=dict.fromkeys(KINDS, "12.13.14+cpu"))
    table = printed(run, width, DOCUMENTS).partition("\n\n")[0]
    assert "…" not in table
    for part in ("all_gather_into_tensor", "mindspore.mint.distributed.", "1 passed", "not installed", *KINDS):
        assert part in table
    assert max(map(len, table.splitlines())) <= width


def test_list_shows_every_case_and_runs_none(monkeypatch):
    monkeypatch.setattr(pages, "run_documents", None)
    result = shim_conformance("list")
    assert result.exit_code == 0, result.output
    for page in DOCUMENTS:
        for case in page.cases:
            assert case.name in result.output
            assert case.shows in result.output


def test_list_shows_the_cases_for_the_kinds_of_tensor_that_are_chosen():
    text = shim_conformance("list", "--tensors", "numpy").output
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["ones", "2", "all_gather", "numpy"] in [line[:4] for line in lines]
    for page in DOCUMENTS:
        for case in page.cases:
            assert (case.shows in text) == case.is_for("numpy")


def test_list_in_a_narrow_terminal_shows_whole_names():
    text = shim_conformance("list", width="60").output
    assert "…" not in text
    for page in DOCUMENTS:
        for case in page.cases:
            assert f"{case.name}\n  ranks: {case.ranks}; collective: {case.collective}; tensors: " in text


def test_the_installed_command_writes_to_a_pipe():
    command = [sys.executable, "-m", "shim", "conformance", "--tensors", "numpy", "--example", CASES]
    child = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    assert child.returncode == 0, child.stdout + child.stderr
    assert child.stderr == ""
    assert "\x1b" not in child.stdout
    assert f"numpy: {len(DOCUMENTS[0].cases)} cases run" in child.stdout


def test_the_installed_command_writes_to_a_terminal():
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "shim", "conformance", "--tensors", "numpy", "--example", CASES]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as child:
        os.close(theirs)
        text = b""
        while piece := read_terminal(ours):
            text += piece
    os.close(ours)
    assert child.returncode == 0, text.decode()
    assert b"5 passed" in text
    assert b"numpy: torch.distributed.all_to_all" in text


def read_terminal(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # Linux reports the end of a terminal like this
        return b""


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        (["--tensors", "numpy,jax"], KINDS),
        (["--tensors", ""], KINDS),
        (["--framework", "jax"], FRAMEWORKS),
        (["--tensors", "numpy", "--example", "torch.distributed.all_to_al"], ["is it torch.distributed.all_to_all"]),
    ],
)
def test_unknown_names_are_refused_with_the_choices(arguments, choices):
    result = shim_conformance(*arguments)
    assert result.exit_code == 2
    for choice in choices:
        assert choice in result.output.replace("\n", "").replace("│", "")


@pytest.mark.parametrize("option", ["--json", "--junit", "--markdown", "--html"])
def test_a_file_in_no_folder_is_refused_before_anything_runs(tmp_path, monkeypatch, option):
    monkeypatch.setattr(pages, "run_documents", None)
    result = shim_conformance(option, str(tmp_path / "absent" / "result.json"))
    assert result.exit_code == 2
    assert "there is no folder" in result.output


@pytest.mark.parametrize("option", ["--json", "--junit", "--markdown", "--html"])
def test_a_folder_in_place_of_a_file_is_refused_before_anything_runs(tmp_path, monkeypatch, option):
    monkeypatch.setattr(pages, "run_documents", None)
    result = shim_conformance(option, str(tmp_path))
    assert result.exit_code == 2
    assert "is a folder" in " ".join(result.output.replace("│", " ").split())


def test_the_exit_status_of_a_failed_run_is_1(monkeypatch):
    failed = a_run(Selection(("numpy",), (), ()), [Failure(0, "call", "", "", "an error")])
    monkeypatch.setattr(pages, "run_documents", lambda documents, selection, on_result: failed)
    assert shim_conformance("--tensors", "numpy").exit_code == 1


def test_one_file_does_not_take_two_results(tmp_path):
    file = str(tmp_path / "result")
    result = CliRunner().invoke(conformance, ["run", "--json", file, "--html", file])
    assert result.exit_code == 2
    assert "two results for one file" in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "result").exists()
