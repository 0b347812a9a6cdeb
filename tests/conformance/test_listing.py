"""``shim conformance list``: the same choice as a run's, and nothing is run."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from shim.cli.conformance import conformance, plans
from shim.conformance import plan
from shim.conformance.examples import suite
from shim.conformance.examples.judging import Record, Verdict
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.suite import SHIM, Source

DOCUMENT = """\
```python
import torch
torch.ones(1)
```

On 512 GPUs.

```python
import torch
```
"""
CASE = "# ranks: 2, 3\nimport {}\nprint(1)\n# shows: 1\n"
PROMPTS = ">>> import torch\n>>> dist.broadcast(torch.ones(1), 0)\n"


@pytest.fixture(autouse=True)
def _torch_alone_is_installed(monkeypatch):
    monkeypatch.setattr(plan, "is_installed", lambda name: name == "torch")
    monkeypatch.setattr(suite, "version_of", lambda name: "1.2.3")


@pytest.fixture
def files(tmp_path):
    """A folder with a document and two cases, of which one is of a framework that is not installed."""
    (tmp_path / "page.md").write_text(DOCUMENT)
    for name in ("torch", "paddle"):
        (tmp_path / f"{name}_case.py").write_text(CASE.format(name))
    return tmp_path


def listed(*arguments, width=160):
    """Return the exit status, what is listed, and its lines as words."""
    result = CliRunner().invoke(conformance, ["list", *map(str, arguments)], env={"COLUMNS": str(width)})
    return result.exit_code, result.output, [line.replace("│", " ").split() for line in result.output.splitlines()]


def test_examples_and_cases_of_files_are_listed_with_kind_ranks_and_line(files, monkeypatch):
    monkeypatch.setattr(suite, "SIDES", {})  # nothing could be run
    status, text, lines = listed(files)
    assert status == 0, text
    assert "torch 1.2.3: 4 examples in files" in text
    assert ["example", "ranks", "steps", "kind", "place"] in [
        line.replace("┃", " ").split() for line in text.splitlines()
    ]
    assert ["page.md", "2", "2", "example", "line", "2"] in lines
    assert ["page.md#2", "512,", "not", "started", "1", "example", "line", "9"] in lines
    assert ["torch_case.py", "2", "2", "case", "line", "1"] in lines
    assert ["torch_case.py#2", "3", "2", "case", "line", "1"] in lines
    assert "paddle: not installed, its examples cannot be run" in text
    assert "all_to_all" not in text  # no case of ours


def test_the_options_of_a_run_choose_what_is_listed(files):
    _, text, _ = listed(files, "--example", "torch_case.py#2")
    assert "1 example in files" in text
    assert "page.md" not in text
    assert listed(files, "--framework", "mindspore")[0] == 2
    assert listed(files, "--example", "nothing")[0] == 2
    assert listed(files, "--tensors", "numpy")[0] == 2


def test_what_is_wrong_in_files_is_told_as_by_a_run(files):
    (files / "bad.py").write_text("# ranks: 2\nimport torch\n# show: 1\n")
    status, text, _ = listed(files)
    assert status == 2
    assert "bad.py:3: 'show' is no marker" in text


def test_what_a_docstring_is_on_record_with_is_listed_and_the_kinds_of_tensor_that_it_goes_with(monkeypatch):
    [good] = examples_in(PROMPTS, "torch", "torch.good", "docstring of torch.good")
    [bare] = examples_in(PROMPTS, "torch", "torch.bare", "docstring of torch.bare")
    refused = Record(good.fingerprint, Verdict.DOCUMENT_WRONG, "a reason", "x", (), {"numpy": "it has none"})
    changed = Record("another text", Verdict.PASS, inapplicable={"numpy": "it had none"})
    source = Source("torch", "1.2.3", (good, bare), {SHIM: {"torch.good": refused, "torch.bare": changed}})
    monkeypatch.setattr(plan, "DOCUMENTS", ())
    monkeypatch.setattr(plans, "make_plan", lambda *choice: plan.make_plan(*choice, read=lambda name: source))
    _, text, lines = listed()
    assert "torch 1.2.3: 2 examples in docstrings" in text
    assert ["torch.good", "2", "2", "document", "wrong"] in lines
    _, text, lines = listed("--tensors", "numpy")
    assert ["torch.good", "2", "2", "document", "wrong", "none"] in lines
    assert ["torch.bare", "2", "2", "pass", "numpy"] in lines


def test_a_narrow_terminal_shows_whole_names(files):
    (files / "a_case_with_a_name_that_takes_more_room_than_there_is.py").write_text(CASE.format("torch"))
    _, text, _ = listed(files, width=60)
    name = "a_case_with_a_name_that_takes_more_room_than_there_is.py"
    assert f"{name}#2\n  ranks: 3; steps: 2; kind: case; place: line 1\n" in text


@pytest.mark.frameworks
def test_a_run_has_what_was_listed_on_this_machine(files, tmp_path, monkeypatch):
    monkeypatch.undo()
    file = tmp_path / "result.json"
    arguments = [str(files / "torch_case.py"), "--json", str(file)]
    assert CliRunner().invoke(conformance, ["run", *arguments]).exit_code == 0
    names = [each["name"] for each in json.loads(file.read_text())["examples"]]
    text = listed(files / "torch_case.py")[1]
    assert names == ["torch_case.py", "torch_case.py#2"]
    assert all(name in text for name in names)
