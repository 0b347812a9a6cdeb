"""The process in which a framework is imported for its docstrings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shim.conformance.examples.reading import docstrings


@pytest.fixture
def with_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have the process find a ``torch`` of this source, whatever lies in its working folder."""
    packages = tmp_path / "packages"
    packages.mkdir()

    def make(source: str) -> None:
        (packages / "torch.py").write_text(source)

    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr(docstrings, "_read_elsewhere", docstrings._read_elsewhere.__wrapped__)
    return make


def test_modules_in_the_working_folder_are_not_taken_for_pythons_own(
    with_torch: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_torch("")
    (tmp_path / "json.py").write_text("raise SystemExit('of the working folder')")
    monkeypatch.chdir(tmp_path)
    assert docstrings.installed_examples("torch") == []


def test_a_framework_that_cannot_be_imported_is_told_with_its_error(with_torch: Callable[[str], None]) -> None:
    with_torch("raise ImportError('libcudart.so is not there')")
    with pytest.raises(
        ImportError, match=r"torch is installed, and cannot be imported(.|\n)*libcudart.so is not there"
    ):
        docstrings.installed_examples("torch")
