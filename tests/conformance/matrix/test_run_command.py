"""``shim conformance``: options, files and the exit status, with examples that are made up."""

from __future__ import annotations

import importlib
import io
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from made_up import a_judgement, a_source_run, an_outcome
from rich.console import Console
from typer.testing import CliRunner

from shim.cli.conformance import conformance, plans
from shim.conformance import kinds, plan
from shim.conformance.documents.pages import CASE_SIDES
from shim.conformance.examples import suite
from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import CASE, REFERENCE, SHIM, SIDES, Side, SourceRun

options = importlib.import_module("shim.cli.conformance.options")
command = importlib.import_module("shim.cli.conformance.run")  # not the function that the package calls so
GOOD = a_judgement("torch.distributed.all_gather")
BAD = a_judgement("torch.distributed.gather", Verdict.FAIL, failures=[(0, 3, "item 1: shown 1, seen 2")])
COMMANDS = ("run", "list", "signatures", "tables", "soak")
FILES = {"--json": '"schema": 3', "--junit": "<testsuites", "--markdown": "# Documented", "--html": "<!doctype html>"}


@pytest.fixture
def shim_conformance(monkeypatch):
    """Invoke the command where torch alone is installed and has the examples *judgements* are about."""

    def invoke(*arguments, judgements=(GOOD,), unseen=()):
        source = a_source_run(judgements).source

        def run_source(source, side, patterns, on_begin, on_judgement, ours, tensors):
            chosen = [one for one in judgements if plan.is_chosen(one.outcome.example.name, patterns)]
            for judgement in chosen:
                on_begin(judgement.outcome.example)
                on_judgement(judgement)
            assert (ours is None) == (side == SHIM)
            return SourceRun(source, side, tuple(chosen), tuple(unseen), 0.5, tensors)

        monkeypatch.setattr(plan, "is_installed", lambda name: name == "torch")
        monkeypatch.setattr(kinds, "is_installed", lambda name: True)
        monkeypatch.setattr(plan, "DOCUMENTS", ())
        monkeypatch.setattr(plans, "make_plan", partial(plan.make_plan, read=lambda name: source))
        monkeypatch.setattr(command, "run_source", run_source)
        return CliRunner().invoke(conformance, list(arguments), env={"COLUMNS": "160"})

    return invoke


def test_what_passes_ends_with_0_and_what_is_not_installed_is_said(shim_conformance):
    result = shim_conformance()
    assert result.exit_code == 0, result.output
    assert "torch: 1 example run" in result.output
    assert "paddle: not installed, its examples cannot be read" in result.output


@pytest.mark.parametrize(
    ("judgements", "unseen"),
    [
        ((GOOD, BAD), ()),
        ((a_judgement("torch.distributed.x", change="the document has changed"),), ()),
        ((GOOD,), ("gone",)),
    ],
    ids=["a failure", "a change", "one that is gone"],
)
def test_what_does_not_pass_ends_with_1(shim_conformance, judgements, unseen):
    assert shim_conformance(judgements=judgements, unseen=unseen).exit_code == 1


def test_a_framework_that_was_asked_for_has_to_be_there(shim_conformance):
    result = shim_conformance("--framework", "torch,paddle")
    assert result.exit_code == 1
    assert "paddle: asked for and not installed" in result.output
    assert shim_conformance("--framework", "torch").exit_code == 0


def test_examples_are_chosen_by_name(shim_conformance):
    result = shim_conformance("run", "--example", "all_gather", judgements=(GOOD, BAD))
    assert result.exit_code == 0, result.output
    result = shim_conformance("--example", "all_gathr", judgements=(GOOD, BAD))
    assert result.exit_code == 2
    assert "is it torch.distributed.all_gather" in " ".join(result.output.replace("│", " ").split())


def test_all_files_are_written_also_of_what_fails(shim_conformance, tmp_path):
    options = [word for option in FILES for word in (option, str(tmp_path / option.strip("-")))]
    assert shim_conformance(*options, judgements=(GOOD, BAD)).exit_code == 1
    for option, begin in FILES.items():
        assert begin in (tmp_path / option.strip("-")).read_text(encoding="utf-8")


@pytest.mark.frameworks
def test_the_framework_itself_stands_beside(shim_conformance, tmp_path):
    file = tmp_path / "result.json"
    result = shim_conformance("--reference", "--every", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert [column["side"] for column in json.loads(file.read_text())["columns"]] == ["reference", "shim"]
    assert "itself" in result.output


def test_cases_alone_run_on_the_frameworks_themselves(monkeypatch):
    cases = replace(a_source_run([a_judgement("torch.distributed.all_to_all: complex")]).source, kind=CASE)
    made = plan.Plan((), kinds.Selection((), (), ()), (), sides=(SHIM, REFERENCE), cases=(cases,))
    ran = []
    monkeypatch.setattr(command, "run_source", lambda source, side, *rest, sides: ran.append((source, side, sides)))
    command._run_examples(made, Console(file=io.StringIO()))
    assert ran == [(cases, REFERENCE, CASE_SIDES)]


def test_the_list_has_what_is_on_record_and_runs_nothing(shim_conformance, monkeypatch):
    result = shim_conformance("list", judgements=(GOOD, BAD))
    assert result.exit_code == 0, result.output
    lines = [line.replace("│", " ").split() for line in result.output.splitlines()]
    assert ["torch.distributed.all_gather", "2", "3", "pass"] in lines
    assert "examples run" not in result.output


@pytest.mark.parametrize("name", COMMANDS[:2])
def test_a_framework_that_cannot_be_imported_is_told(name, monkeypatch):
    def read(framework):
        raise ImportError("torch cannot be imported\nImportError: libcudart.so")

    monkeypatch.setattr(plan, "is_installed", lambda name: name == "torch")
    monkeypatch.setattr(plans, "make_plan", partial(plan.make_plan, read=read))
    result = CliRunner().invoke(conformance, [name])
    assert result.exit_code == 2
    assert "torch cannot be imported\nImportError: libcudart.so" in result.output


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["signatures", "--help"], ["tables", "--help"]])
def test_every_command_says_what_it_does(arguments):
    result = CliRunner().invoke(conformance, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "Usage" in result.output


@pytest.fixture
def files(monkeypatch, tmp_path):
    """A folder with a case of torch and one of paddle, of which torch alone is installed; nothing is run."""
    monkeypatch.setattr(plan, "is_installed", lambda name: name == "torch")
    monkeypatch.setattr(suite, "version_of", lambda name: "1.2.3")
    monkeypatch.setattr(
        suite,
        "SIDES",
        {
            SHIM: Side(
                lambda examples, on_outcome, on_begin, tensors: [on_outcome(an_outcome(each)) for each in examples],
                SIDES[SHIM].judge,
            )
        },
    )
    for name in ("torch", "paddle"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.py").write_text(f"# ranks: 2, 3\nimport {name}\nprint(1)\n# shows: 1\n")
    return tmp_path


def of_files(*arguments):
    return CliRunner().invoke(conformance, ["run", *map(str, arguments)], env={"COLUMNS": "160"})


def test_kinds_of_tensor_have_columns_with_their_engine(shim_conformance, tmp_path):
    files = {option: tmp_path / option.strip("-") for option in FILES}
    options = [word for option, file in files.items() for word in (option, str(file))]
    result = shim_conformance("--tensors", "numpy,torch", "--every", *options)
    assert result.exit_code == 0, result.output
    assert "torch, numpy tensors: 1 example run" in result.output
    assert result.output.count("shared_memory") == 2
    columns = json.loads(files["--json"].read_text())["columns"]
    assert [(column["tensors"], column["engine"]) for column in columns] == [
        ("numpy", "shared_memory"),
        ("torch", "shared_memory"),
    ]
    assert "| shim, numpy, shared_memory | shim, torch, shared_memory |" in files["--markdown"].read_text()
    assert 'name="torch, shim numpy shared_memory"' in files["--junit"].read_text()


def test_all_kinds_are_those_that_are_installed(shim_conformance, monkeypatch):
    monkeypatch.setattr(options, "is_installed", lambda name: name != "paddle")
    result = shim_conformance("--tensors", "all")
    assert result.exit_code == 0, result.output
    assert [line for line in result.output.splitlines() if line.endswith("example run")] == [
        "torch: 1 example run",
        "torch, numpy tensors: 1 example run",
        "torch, mindspore tensors: 1 example run",
    ]


def test_files_are_run_in_place_of_docstrings_and_cases(files):
    result = of_files(files / "torch", "--json", files / "result.json")
    assert result.exit_code == 0, result.output
    assert "The files' examples" in result.output
    told = json.loads((files / "result.json").read_text())
    assert [(each["name"], each["kind"], each["ranks"]) for each in told["examples"]] == [
        ("case.py", "file", 2),
        ("case.py#2", "file", 3),
    ]


def test_files_may_follow_without_a_command(files):
    result = CliRunner().invoke(conformance, [str(files / "torch")], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("absent.md", "path 'absent.md' does not exist"),
        ("absent/folder", "path 'absent/folder' does not exist"),
        ("lsit", "No such command 'lsit'"),
    ],
)
def test_a_first_word_that_is_neither_a_command_nor_there(word, told):
    result = CliRunner().invoke(conformance, [word], env={"COLUMNS": "160"})
    assert (result.exit_code, told in result.output) == (2, True)


def test_comments_that_look_like_outputs_and_are_not_checked_are_said(files):
    block = "```python\nimport torch\n{}\n```\n\n"
    program = "def f(x):\n    print(x)  # 3\n    y = x  # 4\ny = f(1)  # 4\nf(1)  # 5\nif __name__ == '__main__':\n    torch.spawn(f)"
    page = block.format("print(1)  # prints a one") + block.format("print(1)  # 1") + block.format(program)
    (files / "torch" / "page.md").write_text(page)
    result = of_files(files / "torch" / "page.md", "--json", files / "result.json")
    told = [line for line in result.output.splitlines() if "not checked" in line]
    assert told == [
        "page.md: 1 comment looks like an output and was not checked: line 3",
        "page.md#3: 3 comments look like outputs and were not checked: lines 14, 16, 17",
    ]
    assert [len(row["notes"]) for row in json.loads((files / "result.json").read_text())["examples"]] == [1, 0, 1]


def test_files_of_a_framework_that_is_not_installed_do_not_pass(files):
    result = of_files(files)
    assert result.exit_code == 1
    assert "paddle: asked for and not installed" in result.output
    assert of_files(files, "--framework", "torch").exit_code == 0


def test_files_in_a_folder_without_examples_are_named(files):
    (files / "torch" / "words.md").write_text("nothing")
    result = of_files(files / "torch")
    assert result.exit_code == 0, result.output
    assert f"without examples: {files / 'torch' / 'words.md'}" in result.output.replace("\n", "")


def test_a_malformed_case_is_refused_with_its_line(files):
    (files / "torch" / "other.py").write_text("# ranks: two\nimport torch\nprint(1)  # shows: 1\n")
    result = of_files(files / "torch")
    assert result.exit_code == 2
    assert f"{files / 'torch' / 'other.py'}:1: ranks has the form # ranks: 2, 4\n" in result.stderr


def test_files_without_examples_are_refused(files):
    (files / "folder").mkdir()
    (files / "empty.md").write_text("nothing")
    for arguments in (
        ["empty.md"],
        ["folder"],
        ["absent.md"],
        ["torch", "--framework", "mindspore"],
        ["torch", "--example", "xyz"],
        ["torch", "--tensors", "torch"],
    ):
        result = of_files(files / arguments[0], *arguments[1:])
        assert result.exit_code == 2, arguments


def test_two_recorded_versions_are_compared():
    result = CliRunner().invoke(conformance, ["signatures", "--from", "paddle 2.6.2", "--to", "paddle 3.3.1"])
    assert result.exit_code == 0
    assert "paddle.distributed.alltoall_single" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--from", "paddle 2.6.2"],
        ["--from", "paddle 1", "--to", "paddle 3.3.1"],
        ["--from", "paddle 2.6.2", "--to", "torch 2.13.0"],
    ],
)
def test_versions_that_are_not_there_are_refused(arguments):
    assert CliRunner().invoke(conformance, ["signatures", *arguments]).exit_code == 2


def test_an_unknown_command_is_refused():
    assert CliRunner().invoke(conformance, ["tabels"]).exit_code == 2


def test_examples_run_on_this_machine(tmp_path):
    file = tmp_path / "result.json"
    name = "torch.distributed.all_gather"
    arguments = ["--framework", "torch", "--tensors", "torch", "--example", name, "--json", str(file)]
    result = CliRunner().invoke(conformance, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    [example] = json.loads(file.read_text(encoding="utf-8"))["examples"]
    cell = example["cells"]["shim torch shared_memory"]
    assert (example["name"], cell["verdict"]) == (name, "pass")
    assert {rank for seen in cell["seen"] for rank in seen["ranks"]} == {0, 1}
    assert all(seen["difference"] is None and seen["seen"] for seen in cell["seen"])


ROOT = Path(__file__).parents[3]


def the_page():
    return (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_the_cases_of_the_page_and_of_the_examples_pass_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = of_files("docs/conformance.md", "examples/own_cases", "--json", tmp_path / "result.json")
    assert result.exit_code == 0, result.output
    examples = json.loads((tmp_path / "result.json").read_text())["examples"]
    ranks = {}
    for example in examples:
        ranks.setdefault(example["name"].partition("#")[0], []).append(example["ranks"])
    assert ranks == {
        "docs/conformance.md": [2, 4],
        "examples/own_cases/README.md": [2],
        "examples/own_cases/mindspore_all_gather.py": [2],
        "examples/own_cases/paddle_alltoall_single.py": [2],
        "examples/own_cases/torch_all_to_all.py": [2, 3],
    }


def test_the_page_names_commands_and_options_that_exist_on_this_machine():
    helps = {
        name: CliRunner().invoke(conformance, [name, "--help"], env={"COLUMNS": "200"}).output for name in COMMANDS
    }
    for name in re.findall(r"`shim conformance (\w+)", the_page()):
        assert name in COMMANDS
    for option in re.findall(r"--\w+", the_page()):
        assert any(option in text for text in helps.values()), option
