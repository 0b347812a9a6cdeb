"""How the site renders docstrings in the house style, and the links of pages that are read in the repository, too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import griffe
import pytest
from mkdocs.structure.files import File, Files

from website.docstrings import Docstrings
from website.pages import on_page_markdown

FUNCTION = """\
Copy the *tensor* of *src*; see docs/objects.md.

Raises: ValueError for a rank outside; it may be any; RankError where
*src* is none.
Deviates: warns.
Deviates: outside the group it returns None,
always.
See: https://docs.pytorch.org/x
"""


@pytest.fixture(scope="module")
def extension() -> Docstrings:
    return Docstrings()


def test_sections_become_lists_of_definitions(extension: Docstrings) -> None:
    assert extension.as_markdown(FUNCTION).split("\n\n") == [
        'Copy the `tensor` of `src`; see <a href="../../objects/">docs/objects.md</a>.',
        "Raises\n:   `ValueError` for a rank outside; it may be any",
        ":   [`RankError`][shim.errors.RankError] where `src` is none.",
        "Differs\n:   warns.",
        ":   outside the group it returns None, always.",
        "The framework's page\n:   <https://docs.pytorch.org/x>",
    ]


@pytest.mark.parametrize(
    ("docstring", "shown"),
    [
        ("Raise ``StateError``.", "Raise [`StateError`][shim.errors.StateError]."),
        ("Take *args* and 2 * 3 * 4.", "Take `args` and 2 * 3 * 4."),
        ("So::\n\n    raise StateError(*args*)", "So:\n\n    raise StateError(*args*)"),
        ("A tree.\n\n::\n\n    StateError", "A tree.\n\n\n    StateError"),
        ("Nothing of MyStateErrors.", "Nothing of MyStateErrors."),
    ],
)
def test_the_text_names_parameters_errors_and_code(extension: Docstrings, docstring: str, shown: str) -> None:
    assert extension.as_markdown(docstring).strip() == shown


def test_silent_attributes_of_a_class_are_named_in_one_line(tmp_path: Path) -> None:
    source = 'class Op:\n    """An op."""\n    SUM = 1\n    caller = 2\n    _own = 3\n    rank: int\n    told = 4\n    """Four."""\n'
    (tmp_path / "ours.py").write_text(source, encoding="utf-8")
    module = griffe.load("ours", search_paths=[tmp_path], extensions=griffe.load_extensions(Docstrings))
    assert module["Op"].docstring.value == "An op.\n\nAttributes\n:   `SUM`, `rank`"
    assert list(module["Op"].members) == ["told"]


@pytest.fixture(scope="module")
def files() -> Files:
    return Files([File(name, "", "", True) for name in ("index.md", "tasks/b.md", "testing.md")])


@pytest.mark.parametrize(
    ("here", "written", "shown"),
    [
        ("index.md", "[the plugin](docs/testing.md#settings)", "[the plugin](testing.md#settings)"),
        ("index.md", "[testing.md](docs/testing.md)", "[Test distributed code on one machine](testing.md)"),
        ("tasks/b.md", "[home](../../README.md)", "[home](../index.md)"),
        ("testing.md", "[a program](../pyproject.toml)", "a program (`pyproject.toml`)"),
        ("testing.md", "[pyproject.toml](../pyproject.toml)", "`pyproject.toml`"),
        ("testing.md", "[lost](lost.md), [there](https://a.b/c.md)", "[lost](lost.md), [there](https://a.b/c.md)"),
        ("testing.md", "![a picture](trace.png), [here](#there)", "![a picture](trace.png), [here](#there)"),
    ],
)
def test_links_lead_to_the_site_s_own_pages(files: Files, here: str, written: str, shown: str) -> None:
    page = SimpleNamespace(file=files.get_file_from_path(here), meta={})
    assert on_page_markdown(written, page, files) == shown
