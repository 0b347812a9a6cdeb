"""Which parts of the gate a change needs: all, unless the table says which tests can notice it."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.mutants.listed import MUTANTS
from campaigns.mutants.mutant import Mutant
from checks import gate
from checks.gate import ALL, ALWAYS, LEAVES, RECORD, selected

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        (["shim/core/calls.py"], ("examples", "tests")),
        (["checks/prose.py"], ("examples", "tests")),
        (["tests/core/limited_ranks.py"], ("examples", "tests")),
        (["native/group/group.cpp"], ALL),
        ([".ci/run"], ALL),
        (["a/new/folder"], ALL),
        (["docs/hosts.md", "pyproject.toml"], ALL),
        (["CHANGELOG.md"], (*ALWAYS, "tests/website")),
        (["benchmarks/core.py", "website/style.css"], (*ALWAYS, "tests/core", "tests/website")),
        ([], ALWAYS),
        (["shim/port/rewriting.py"], (*ALWAYS, "tests/cli", "tests/port", "tests/test_tasks.py", "tests/website")),
        (["tests/core/test_objects.py"], (*ALWAYS, "tests/core")),
        (["tests/test_launchers.py"], (*ALWAYS, "tests/test_launchers.py")),
        (["tests/checks/test_gate.py"], ALWAYS),
    ],
)
def test_what_a_change_needs(changed: list[str], parts: tuple[str, ...]) -> None:
    assert selected(changed) == parts


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose only commit is on record."""
    monkeypatch.setattr(gate, "_ROOT", tmp_path)
    monkeypatch.delenv("SHIM_GATE", raising=False)
    for folder in (*ALWAYS, ".ci", "docs", "native", "shim/port"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "native/a.cpp").write_text("a\n" * 9)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "a")
    (tmp_path / RECORD).write_text(git(tmp_path, "rev-parse", "HEAD"))
    return tmp_path


def git(tree: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.mark.programs("git")
def test_a_change_since_the_commit_on_record(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "CHANGELOG.md").touch()
    assert gate._parts() == ALWAYS
    monkeypatch.setenv("SHIM_GATE", "whole")
    assert gate._parts() == ALL


@pytest.mark.programs("git")
def test_a_file_that_has_moved_is_missed_where_it_was(tree: Path) -> None:
    git(tree, "mv", "native/a.cpp", "shim/port/a.py")
    assert gate._parts() == ALL


@pytest.mark.programs("git")
@pytest.mark.parametrize("record", ["0" * 40, "", None])
def test_without_the_commit_on_record_all_is_run(tree: Path, record: str | None) -> None:
    (tree / RECORD).unlink() if record is None else (tree / RECORD).write_text(record)
    assert gate._parts() == ALL


@pytest.mark.programs("git")
@pytest.mark.parametrize(("run", "status"), [("exit 0", 0), ("exit 3", 3), ("touch changed", 1)])
def test_a_commit_is_recorded_if_the_whole_passes(tree: Path, run: str, status: int) -> None:
    (tree / ".ci/run").write_text(run)
    (tree / RECORD).write_text("before\n")
    assert gate.run_whole() == 2  # nothing was committed
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "b")
    assert gate.run_whole() == status
    recorded = git(tree, "rev-parse", "HEAD") if status == 0 else "before\n"
    assert (tree / RECORD).read_text() == recorded


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_tests_that_name_a_leaf_are_selected_with_it(leaf: str) -> None:
    tests = selected([leaf + "any.py" if leaf.endswith("/") else leaf])
    users = [str(file.relative_to(ROOT)) for file in PYTHON if re.search(_names(leaf), file.read_text())]
    assert [user for user in users if not _is_selected(user, (*tests, leaf.rstrip("/")))] == []


def _names(leaf: str) -> str:
    """Return a pattern of a leaf's name: as a path, a module or a command."""
    *folders, last = leaf.rstrip("/").split("/")
    path = re.escape("/".join([*folders, last]))
    quoted = re.escape(f'"{last}"') if leaf.endswith("/") and not folders else "(?!)"
    module = re.escape(f"{folders[0]}.{last}") + r"\b" if folders else "(?!)"
    command = rf'shim"?,? "?{last}\b' if folders == ["shim"] else "(?!)"
    return (
        rf"(?<![\w/]){path}/|(?<!/){quoted}|\b{module}|{command}"
        if leaf.endswith("/")
        else rf'ROOT / "{re.escape(leaf)}"'
    )


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf.startswith("shim/")])
def test_nothing_but_commands_imports_a_leaf(leaf: str) -> None:
    package = leaf.rstrip("/").replace("/", ".")
    tested = [other for other, tests in LEAVES.items() if tests and set(tests) <= set(LEAVES[leaf])]  # with it
    files = [
        file
        for file in (ROOT / "shim").rglob("*.py")
        if not str(file.relative_to(ROOT)).startswith((leaf, "shim/cli/", *tested))
    ]
    assert [file for file in files if re.search(rf"\b{re.escape(package)}\b", file.read_text())] == []


def test_no_test_is_imported_from_another_folder() -> None:
    folders = {file.stem: file.relative_to(ROOT).parts[:2] for file in PYTHON}
    strangers = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in PYTHON
        for name in _imports(file)
        if name.startswith("test_") and folders[name] != file.relative_to(ROOT).parts[:2]
    ]
    assert strangers == []


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_that_see_a_mistake_are_selected_for_its_file(mutant: Mutant) -> None:
    parts = selected([mutant.file])
    assert "tests" in parts or all(_is_selected(test.partition("::")[0], parts) for test in mutant.tests)


def _is_selected(path: str, tests: tuple[str, ...]) -> bool:
    return any(path == test or path.startswith(f"{test}/") for test in tests)
