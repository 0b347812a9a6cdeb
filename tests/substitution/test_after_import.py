"""What is to be done after an import is done once, and only after an import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from shim.frontends._after_import import after_import


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "seen_later.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "seen_later", raising=False)
    return "seen_later"


def test_a_module_that_is_imported_later(name: str) -> None:
    seen: list[int] = []
    finders = list(sys.meta_path)
    after_import(name, lambda module: seen.append(module.value))
    assert importlib.util.find_spec(name) is not None  # as libraries look for torch
    assert seen == []
    importlib.import_module(name)
    assert seen == [1]
    assert sys.meta_path == finders


def test_a_first_import_that_fails(name: str, tmp_path: Path) -> None:
    seen: list[int] = []
    after_import(name, lambda module: seen.append(module.value))
    (tmp_path / f"{name}.py").write_text("raise OSError\n")
    with pytest.raises(OSError):
        importlib.import_module(name)
    (tmp_path / f"{name}.py").write_text("value = 22\n")
    importlib.import_module(name)
    assert seen == [22]


def test_a_module_that_is_there(name: str) -> None:
    seen: list[int] = []
    importlib.import_module(name)
    after_import(name, lambda module: seen.append(module.value))
    assert seen == [1]
