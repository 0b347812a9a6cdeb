"""The documented examples on another library: on gloo, which is torch's own, they end as on record of torch itself."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from campaigns.columns import see_on_this_rank, verdicts
from shim.conformance.examples.judging import read_records
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.suite import REFERENCE
from shim.record.releases import version_of

NAMES = ("torch.distributed.all_gather_single", "torch.distributed.all_reduce", "torch.distributed.all_to_all_single")


@pytest.mark.frameworks
def test_examples_on_gloo_end_as_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHIM_TORCH_BACKEND", raising=False)
    monkeypatch.setenv("SHIM_COLUMN_MODULES", "")  # so that it is put back
    examples = [example for example in installed_examples("torch") if example.name in NAMES]
    found = verdicts({"examples": "torch", "environment": {}, "modules": {}}, examples)
    known = read_records("torch", version_of("torch"), REFERENCE)
    assert {name: (row["verdict"], row.get("reason", "")) for name, row in found.items()} == {
        name: (known[name].verdict.value, known[name].reason) for name in NAMES
    }


def test_an_import_gives_the_library_s_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "made_up_framework").mkdir()
    for name in ("made_up_framework/__init__.py", "made_up_framework/distributed.py"):
        (tmp_path / name).touch()
    (tmp_path / "other_library.py").write_text("greeting = 'from the other library'", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = importlib.import_module("made_up_framework.distributed")
    monkeypatch.setitem(sys.modules, "made_up_framework.distributed", own)  # so that it is put back
    monkeypatch.setenv("SHIM_COLUMN_MODULES", '{"made_up_framework.distributed": "other_library"}')
    monkeypatch.setenv("RANK", "0")
    text = ">>> from made_up_framework import distributed\n>>> print(distributed.greeting)\nfrom the other library\n"
    [example] = examples_in(text, "made_up_framework", "made_up_framework.distributed.greeting", "a test")
    assert see_on_this_rank(example, [{}]).failures == []
