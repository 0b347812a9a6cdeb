"""Examples in a user's own files, and cases of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from shim.conformance.examples.cases import examples_of_case, is_case
from shim.conformance.examples.example import EVERY_RANK
from shim.conformance.examples.files import examples_in_files, framework_of

PROMPTS = """>>> import torch.distributed as dist
>>> # 3 ranks
>>> print(dist.get_world_size())
3
"""
INDENTED = "".join(f"    {line}\n" for line in PROMPTS.splitlines())
DOCUMENTS = {
    "page.md": f"# Title\n\nText.\n\n```python\n{PROMPTS}```\n\nMore.\n",
    "page.rst": f"Title\n=====\n\n.. code-block:: python\n\n{INDENTED}\nMore.\n",
    "page.html": f"<html><body><p>Text</p><pre><code>{PROMPTS.replace('>', '&gt;')}</code></pre></body></html>",
    "module.py": f'def f():\n    """Do it.\n\n{INDENTED}    """\n',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_kind_of_document(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(DOCUMENTS[name], encoding="utf-8")
    (example,) = examples_in_files([tmp_path / name])
    assert (example.framework, example.ranks) == ("torch", 3)
    assert [step.source for step in example.steps] == [
        "import torch.distributed as dist",
        "print(dist.get_world_size())",
    ]
    wanted = example.steps[-1].wanted
    assert wanted is not None
    assert (wanted.on(2) or "").strip() == "3"


def test_a_folder_gives_all_that_is_in_it_by_name(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name, text in DOCUMENTS.items():
        (tmp_path / "inner" / name).write_text(text, encoding="utf-8")
    (tmp_path / "other.png").write_bytes(b"\x89")
    names = [example.name for example in examples_in_files([tmp_path])]
    assert names == ["inner/module.py:f", "inner/page.html", "inner/page.md", "inner/page.rst"]


def test_blocks_without_a_framework_are_no_examples(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```python\nprint(1)\n```\n", encoding="utf-8")
    assert examples_in_files([tmp_path]) == []
    assert framework_of("import numpy") is None
    assert framework_of("x\n  >>> from mindspore import ops") == "mindspore"


def test_what_is_no_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"page\.pdf is no document: it must end in one of \.md"):
        examples_in_files([tmp_path / "page.pdf"])


CASE = """# ranks: 2, 4
import torch

x = torch.ones(2)
print(x)
# shows: tensor([1.,
#             1.])
for _ in range(2):
    print("a")
# shows on rank 0: a
#     a
# shows on rank 1: b
x.no_such()  # raises
"""


def test_a_case_says_what_it_shows_and_how_often_it_runs() -> None:
    two, four = examples_of_case(CASE, "torch", "case.py")
    assert (two.ranks, four.ranks, two.name, four.name) == (2, 4, "case.py", "case.py#2")
    assert [step.line for step in two.steps] == [2, 4, 5, 8, 13]
    first, second = [step.wanted.text for step in two.steps if step.wanted is not None]
    assert first[EVERY_RANK].split() == ["tensor([1.,", "1.])"]
    assert {rank: text.split() for rank, text in second.items()} == {0: ["a", "a"], 1: ["b"]}
    assert [step.raises for step in two.steps] == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("text", "answer"),
    [(CASE, True), ("\n" + CASE, True), ("import torch\n" + CASE, False), ("# ranks: many\n", False), ("", False)],
)
def test_a_case_begins_with_its_ranks(text: str, answer: bool) -> None:
    assert is_case(text) is answer


def test_a_case_without_a_framework_is_refused(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text("# ranks: 2\nprint(1)\n", encoding="utf-8")
    with pytest.raises(ValueError, match="imports none of torch, paddle and mindspore"):
        examples_in_files([tmp_path])
