from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks import prose

TREE = {
    "README.md": "",
    "SECURITY.md": "",
    "CONTRIBUTING.md": "",
    "CHANGELOG.md": "",
    "docs/a.md": "",
    "shim/__init__.py": "",
    "shim/core/calls.py": "LIMIT = 1\ndef all_reduce(): ...\n",
}


@pytest.mark.parametrize(
    "line",
    [
        "See `shim/core/calls.py` and `shim/core/`.",
        "`shim.core.calls.all_reduce` and `shim.core.calls.LIMIT`, `shim`.",
        "A file `shim/frontends/<framework>/x.py`, and `shim run -n 2`; `native` too.",
        "[the page](docs/a.md) and [another](https://example.org/docs/b.md)",
    ],
)
def test_what_is_there_may_be_named(write_tree, line: str) -> None:
    assert prose.check(write_tree({**TREE, "README.md": f"# shim\n{line}\n"})) == []


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("See `shim/core/call.py`.", "README.md:2: there is no shim/core/call.py"),
        ("`shim.core.calls.reduce_all`", "README.md:2: nothing is called shim.core.calls.reduce_all"),
        ("`shim.cores`", "README.md:2: nothing is called shim.cores"),
        ("It takes @@PROFILE@@ us.", "README.md:2: @@PROFILE@@ was to be filled in"),
        ("[the page](docs/b.md)", "README.md:2: links to docs/b.md, which is not there"),
    ],
)
def test_what_is_not_there_is_found(write_tree, line: str, finding: str) -> None:
    assert prose.check(write_tree({**TREE, "README.md": f"# shim\n{line}\n"})) == [finding]


def test_a_missing_page_is_found(write_tree) -> None:
    tree = {name: text for name, text in TREE.items() if name != "CHANGELOG.md"}
    assert prose.check(write_tree(tree)) == ["CHANGELOG.md:1: there is no such page"]


def test_links_are_relative_to_their_page(write_tree) -> None:
    root = write_tree({**TREE, "docs/a.md": "[home](../README.md) [lost](README.md)\n"})
    assert prose.check(root) == ["docs/a.md:1: links to README.md, which is not there"]


def test_pages_in_folders_are_read_too(write_tree) -> None:
    root = write_tree({**TREE, "docs/tasks/b.md": "[a page](../a.md) [lost](a.md)\n"})
    assert prose.check(root) == ["docs/tasks/b.md:1: links to a.md, which is not there"]


def test_contributing_lists_the_import_contracts() -> None:
    root = Path(__file__).parents[2]
    names = re.findall(
        r'^name = "(.*)"\n(?:type|#)', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = " ".join((root / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert len(names) > 10
    assert [name for name in names if f"- {name}." not in listed] == []
