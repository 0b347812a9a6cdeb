"""The tools find what they are for, with this project's own settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks import tools

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", ".clang-format")}
CONTAINERS = [
    name.replace(".", "/")
    for name in re.findall(r'^containers = \["([\w.]+)"\]$', SETTINGS["pyproject.toml"], re.MULTILINE)
]
LAYERS = sorted(
    str(file.relative_to(ROOT))
    for container in CONTAINERS
    for pattern in ("*.py", "*/__init__.py")
    for file in (ROOT / container).glob(pattern)
)


@pytest.fixture
def tree(write_tree):
    """Write a tree with the project's settings and layers, and then *files*."""

    def write(files: dict[str, str]) -> Path:
        typed = ("campaigns/__init__.py", "checks/__init__.py", "website/__init__.py")  # by mypy, beside shim
        return write_tree({**SETTINGS, **dict.fromkeys((*typed, *LAYERS), ""), **files})

    return write


@pytest.mark.parametrize(
    ("check", "file", "text"),
    [
        (tools.ruff_check, "shim/a.py", '__all__ = ["LIMIT", "Work", "wait"]\nLIMIT = Work = wait = 1\n'),
        (tools.ruff_format, "shim/a.py", "x = 1\n"),
        (tools.mypy, "shim/a.py", "def double(x: int) -> int:\n    return 2 * x\n"),
        (tools.clang_format, "native/a.cpp", "int twice(int x) { return 2 * x; }\n"),
        (tools.import_linter, "shim/frontends/torch/__init__.py", "import shim.core\nimport shim.errors\n"),
        (tools.import_linter, "shim/testing/plugin.py", "import shim.launch\nimport shim.frontends.torch\n"),
        (tools.import_linter, "shim/frontends/paddle_2/__init__.py", "import shim.frontends._paddle\n"),
    ],
)
def test_good_source_passes(tree, check, file: str, text: str) -> None:
    assert check(tree({file: text})) == []


@pytest.mark.parametrize(
    ("check", "file", "text", "finding"),
    [
        (tools.ruff_check, "shim/a.py", '__all__ = ["wait", "Work"]\nWork = wait = 1\n', "RUF022"),
        (tools.ruff_check, "tests/a.py", "import os\n", "F401"),
        (tools.ruff_check, "shim/a.py", 'print("here")\n', "T201"),
        (tools.ruff_format, "shim/a.py", "x=1\n", "shim/a.py"),
        (tools.mypy, "shim/a.py", "def double(x):\n    return 2 * x\n", "no-untyped-def"),
        (tools.clang_format, "native/a.cpp", "int twice(int x){return 2*x;}\n", "native/a.cpp: clang-format -i"),
        (tools.clang_format, "native/a.txt", "", "no C++ file"),
        (
            tools.import_linter,
            "shim/core/__init__.py",
            "import shim.frontends.torch\n",
            "shim.core -> shim.frontends.torch",
        ),
        (tools.import_linter, "shim/core/__init__.py", "import shim.launch\n", "shim.core -> shim.launch"),
        (tools.import_linter, "shim/errors.py", "import shim.core\n", "shim.errors -> shim.core"),
        (tools.import_linter, "shim/launch/__init__.py", "import shim.core\n", "shim.launch -> shim.core"),
        (
            tools.import_linter,
            "shim/testing/plugin.py",
            "import shim.conformance\n",
            "shim.testing.plugin -> shim.conformance",
        ),
        (tools.import_linter, "shim/new.py", "", "shim.new"),
        (
            tools.import_linter,
            "shim/frontends/torch/__init__.py",
            "import shim.frontends.paddle_3\n",
            "shim.frontends.torch -> shim.frontends.paddle_3",
        ),
        (
            tools.import_linter,
            "shim/frontends/torch/_errors.py",
            "import shim.frontends.torch._groups\n",
            "shim.frontends.torch._errors -> shim.frontends.torch._groups",
        ),
        (
            tools.import_linter,
            "shim/frontends/mindspore/__init__.py",
            "def f():\n    import shim.frontends._paddle\n",
            "shim.frontends.mindspore -> shim.frontends._paddle",
        ),
        (
            tools.import_linter,
            "shim/conformance/examples/__init__.py",
            "import shim.conformance.documents\n",
            "shim.conformance.examples -> shim.conformance.documents",
        ),
        (
            tools.import_linter,
            "shim/conformance/examples/reading/__init__.py",
            "import shim.conformance.examples.running\n",
            "shim.conformance.examples.reading -> shim.conformance.examples.running",
        ),
        (
            tools.import_linter,
            "shim/conformance/documents/case.py",
            "import shim.conformance.documents.pages\n",
            "shim.conformance.documents.case -> shim.conformance.documents.pages",
        ),
    ],
)
def test_bad_source_is_found(tree, check, file: str, text: str, finding: str) -> None:
    assert any(finding in line for line in check(tree({file: text})))


def test_a_missing_tool_is_a_finding(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_find", lambda tool: None)
    assert tools.mypy(tree({})) == ["mypy is not installed here: python3 -m pip install -e '.[test]'"]


def test_a_circle_that_a_function_closes_is_found(tree) -> None:
    there = "shim.frontends.torch._groups"
    files = {
        "shim/frontends/torch/_groups/a.py": f"import {there}.b\n",
        "shim/frontends/torch/_groups/b.py": f"def f():\n    import {there}.a\n",
    }
    findings = tools.import_linter(tree(files))
    assert f"No cycles are allowed in {there}." in findings
