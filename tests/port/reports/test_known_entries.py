"""The baseline: what an earlier report has is not reported again."""

from __future__ import annotations

from pathlib import Path

import pytest

from shim.port import Plan
from shim.port.plan import Result
from shim.port.reports.as_json import as_json, known_entries, without_known
from shim.port.run import port_paths

LEFT = "torchrun --nnodes 2 a.py\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "a.sh"


def port(file: Path, text: str) -> Result:
    file.write_text(text)
    return port_paths([file], Plan("torch", "mindspore"), jobs=1)


def test_an_entry_is_known_at_another_line_and_one_more_is_new(file: Path) -> None:
    baseline = as_json(port(file, LEFT), written=False)
    moved = without_known(port(file, f"echo\n  {LEFT}"), known_entries(baseline))
    assert (moved.count("left"), moved.known) == (0, 1)
    twice = without_known(port(file, LEFT + LEFT), known_entries(baseline))
    assert ([finding.file_line for finding in twice.files[0].findings], twice.known) == ([2], 1)


@pytest.mark.parametrize("text", [LEFT.replace("2", "3"), LEFT.replace("--nnodes 2", "--nproc_per_node auto")])
def test_other_code_and_other_rules_are_new(file: Path, text: str) -> None:
    found = without_known(port(file, text), known_entries(as_json(port(file, LEFT), written=False)))
    assert (found.count("left"), found.known) == (1, 0)


def test_an_entry_of_another_file_is_new(file: Path) -> None:
    baseline = as_json(port(file, LEFT), written=False)
    assert without_known(port(file.with_name("b.sh"), LEFT), known_entries(baseline)).count("left") == 1


@pytest.mark.parametrize("baseline", ["", "[]", '{"files": [{"path": "a.sh"}]}', '{"version": 1}'])
def test_what_is_no_report_is_refused(baseline: str) -> None:
    with pytest.raises(ValueError, match="not a JSON report of shim port"):
        known_entries(baseline)
