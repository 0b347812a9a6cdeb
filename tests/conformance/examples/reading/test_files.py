"""Examples and cases in a user's own files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.reading.files import examples_in_files
from shim.conformance.examples.reading.reader import framework_of
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import FILE, SHIM, SIDES, Side, Source, run_source

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


def examples_in(*paths: Path) -> list[Example]:
    return examples_in_files(paths).examples


def written(folder: Path, **files: str) -> Path:
    """Write *files* into *folder*, whose names have a point for the underscore, and return it."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_kind_of_document(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(DOCUMENTS[name], encoding="utf-8")
    (example,) = examples_in(tmp_path / name)
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
    names = [example.name for example in examples_in(tmp_path)]
    assert names == ["inner/module.py:f", "inner/page.html", "inner/page.md", "inner/page.rst"]


def test_what_is_hidden_or_installed_in_a_folder_is_not_looked_into(tmp_path: Path) -> None:
    root = tmp_path / ".hidden"
    for inner in (".", ".venv", ".git", "__pycache__", "a/node_modules/b", "venv/lib/site-packages/x", "docs"):
        (root / inner).mkdir(parents=True, exist_ok=True)
        (root / inner / "page.md").write_text(DOCUMENTS["page.md"], encoding="utf-8")
    assert [example.name for example in examples_in(root)] == ["docs/page.md", "page.md"]
    assert len(examples_in(root / ".venv")) == 1


def test_blocks_without_a_framework_are_no_examples(tmp_path: Path) -> None:
    written(tmp_path, page_md="```python\nprint(1)\n```\n", other_md=DOCUMENTS["page.md"])
    found = examples_in_files([tmp_path])
    assert [example.name for example in found.examples] == ["other.md"]
    assert found.without == [tmp_path / "page.md"]
    assert framework_of("import numpy") is None
    assert framework_of("x\n  >>> from mindspore import ops") == "mindspore"


def test_an_example_is_of_the_framework_it_imports(tmp_path: Path) -> None:
    blocks = [f"```python\n{code}\n```\n" for code in ("import torch", "import paddle", "print(1)")]
    examples = examples_in(written(tmp_path, page_md="\n".join(blocks)))
    assert [example.framework for example in examples] == ["torch", "paddle", "torch"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_steps_have_the_lines_of_their_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(DOCUMENTS[name], encoding="utf-8")
    (example,) = examples_in(tmp_path / name)
    lines = DOCUMENTS[name].splitlines()
    for step in example.steps:
        assert step.source in lines[step.line - 1].replace("&gt;", ">")
    assert example.place.endswith(f", line {example.steps[0].line}")


CASE = """# ranks: 2, 4
import torch
print(1)
# shows: 1
"""
BLOCK = "".join(f"    {line}\n" for line in CASE.splitlines())
WITH_CASES = {
    "page.md": f"# Title\n\n```python\n{CASE}```\n\nText.\n\n```python\n{PROMPTS}```\n",
    "page.rst": f"Title\n=====\n\n.. code-block:: python\n\n{BLOCK}\nText.\n\n.. code-block:: python\n\n{INDENTED}\nMore.\n",
    "page.html": f"<p>Text</p>\n<pre>{CASE}</pre>\n<p>More</p>\n<pre>{PROMPTS.replace('>', '&gt;')}</pre>",
    "module.py": f'def f():\n    """Do it.\n\n    .. code-block:: python\n\n{BLOCK.replace("    ", " " * 8)}\n\n    Text.\n\n{INDENTED}    """\n',
}


@pytest.mark.parametrize("name", WITH_CASES)
def test_a_block_of_code_that_begins_with_its_ranks_is_a_case(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(WITH_CASES[name], encoding="utf-8")
    two, four, prompts = examples_in(tmp_path / name)
    assert [(each.ranks, each.is_case, each.number) for each in (two, four, prompts)] == [
        (2, True, 1),
        (4, True, 2),
        (3, False, 3),
    ]
    assert [step.source for step in two.steps] == ["import torch", "print(1)"]
    lines = WITH_CASES[name].splitlines()
    assert [lines[step.line - 1].strip() for step in two.steps] == ["import torch", "print(1)"]
    assert two.steps[1].wanted is not None
    assert lines[two.steps[1].wanted.line - 1].strip() == "# shows: 1"
    assert [step.source for step in prompts.steps] == [
        "import torch.distributed as dist",
        "print(dist.get_world_size())",
    ]


@pytest.mark.parametrize("name", WITH_CASES)
def test_a_malformed_case_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text = WITH_CASES[name].replace("# shows: 1", "# show: 1")
    (tmp_path / name).write_text(text, encoding="utf-8")
    line = 1 + next(number for number, each in enumerate(text.splitlines()) if "# show: 1" in each)
    with pytest.raises(ValueError, match=rf"{name}:{line}: 'show' is no marker"):
        examples_in(tmp_path)


def test_all_that_is_wrong_is_told(tmp_path: Path) -> None:
    written(tmp_path, a_py="# ranks: 2\nprint(1)\n# shows: 1\n", b_py="x = (\n", c_py="import torch\n# ranks: 2\n")
    (tmp_path / "d.md").write_bytes(b"\xff")
    with pytest.raises(ValueError) as caught:
        examples_in(tmp_path, tmp_path / "e.pdf")
    assert [line.removeprefix(f"{tmp_path}/") for line in str(caught.value).splitlines()] == [
        "a.py:1: which framework the case is for cannot be told: it imports none of torch, paddle and mindspore",
        "b.py:1: '(' was never closed",
        "c.py:2: only a case says so, and a case begins with # ranks:",
        "d.md: is no UTF-8, at byte 0",
        "e.pdf: is no document, whose name ends in one of .md, .markdown, .rst, .txt, .html, .htm, .py",
    ]


@pytest.mark.parametrize("name", ["file.md", "folder"])
def test_what_is_named_has_an_example(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.md").write_text("no example")
    (tmp_path / "case.py").write_text(CASE)
    with pytest.raises(ValueError, match=f"{name}: there are no examples in it"):
        examples_in(tmp_path / "case.py", tmp_path / name)


def test_names_are_of_one_example_each(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        written(tmp_path / folder, case_py=CASE)
    a, b = tmp_path / "a", tmp_path / "b"
    names = [example.name for example in examples_in(a, b, b / "case.py")]
    assert names == [f"{a}/case.py", f"{a}/case.py#2", f"{b}/case.py", f"{b}/case.py#2"]


BROKEN = {
    "page.md": "```python\nimport torch\n```\n\n```python\n\nx = 1\nprint(x\n```\n",
    "prompts.md": ">>> import torch\n1\n\n\n>>> print(x\n1\n",
    "page.rst": ".. code-block:: python\n\n    import torch\n\nText\n\n.. code:: python\n\n    import paddle\n    print(x\n",
    "page.html": '<pre>import torch</pre>\n<pre class="python">\nimport paddle\nprint(x\n</pre>',
    "module.py": 'def f():\n    """Do it.\n\n    >>> import torch\n    >>> print(x\n    """\n',
}


@pytest.mark.parametrize("name", BROKEN)
def test_code_that_is_no_python_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(BROKEN[name], encoding="utf-8")
    line = 1 + next(number for number, each in enumerate(BROKEN[name].splitlines()) if "print(x" in each)
    with pytest.raises(ValueError, match=rf"{name}:{line}: '\(' was never closed"):
        examples_in(tmp_path)


@pytest.mark.parametrize(
    "language", ["python", "Python3", "py", "pycon", "{.python .numberLines}", "{code-block} python"]
)
def test_blocks_of_python(language: str, tmp_path: Path) -> None:
    text = f"import torch\n\n```{language}\nx = 1\n```\n"
    (example,) = examples_in(written(tmp_path, page_md=text))
    assert [step.source for step in example.steps] == ["x = 1"]


@pytest.mark.parametrize("language", ["sh", "json", "console", "python-console-session", "{code-block} sh"])
def test_blocks_in_another_language_are_no_examples(language: str, tmp_path: Path) -> None:
    blocks = [f"```{language}\n{code}\n```\n" for code in ("run_it", "import torch", ">>> import torch", "(")]
    written(tmp_path, page_md="\n".join(blocks), other_md=DOCUMENTS["page.md"])
    assert [example.name for example in examples_in(tmp_path)] == ["other.md"]


def test_a_block_without_a_language_is_an_example_where_it_imports_a_framework(tmp_path: Path) -> None:
    blocks = [
        f"```\n{code}\n```\n" for code in ("pip install torch", '{"a": 1}', "import torch\nx = 1", ">>> y = 2", "(")
    ]
    first, second = examples_in(written(tmp_path, page_md="\n".join(blocks)))
    assert [step.source for step in (*first.steps, *second.steps)] == ["import torch", "x = 1", "y = 2"]


def test_a_page_says_which_code_is_python(tmp_path: Path) -> None:
    text = "<pre>import torch</pre><pre><code class='language-python'>x = 1</code></pre><pre>y = 2</pre>"
    assert [example.steps[0].source for example in examples_in(written(tmp_path, page_html=text))] == [
        "import torch",
        "x = 1",
    ]


SIZED = """Runs on 512 GPUs.

```python
import torch
```

More than 4 devices
are good, but here there are 3 ranks:

```pycon
>>> x = 1
```

```
>>> y = torch.ones(5)  # 5 ranks
```
"""


def test_how_many_ranks_an_example_needs_is_said_right_before_it(tmp_path: Path) -> None:
    text = f"Runs on 512 GPUs.\n\nText.\n\n{SIZED}"
    ranks = [example.ranks for example in examples_in(written(tmp_path, page_md=text))]
    assert ranks == [512, 4, 5]
    ranks = [
        example.ranks for example in examples_in(written(tmp_path, page_md=SIZED.replace("GPUs.", "GPUs.\n\nText.")))
    ]
    assert ranks == [2, 4, 5]


def test_an_example_for_more_ranks_than_there_may_be_is_not_run(tmp_path: Path) -> None:
    written(tmp_path, page_md="Runs on 512 GPUs.\n\n```python\nimport torch\n```\n", case_py=CASE.replace("2, 4", "17"))
    source = Source("torch", "1", tuple(examples_in(tmp_path)), {}, FILE)
    run_them: list[Example] = []

    def run(examples: Sequence[Example], *_: object, **__: object) -> list[Outcome]:
        run_them.extend(examples)
        return []

    (judgement,) = run_source(source, sides={SHIM: Side(run, SIDES[SHIM].judge)}).judgements
    assert (judgement.verdict, judgement.change) == (Verdict.NOT_RUNNABLE, None)
    assert "512 ranks" in judgement.reason
    assert [example.name for example in run_them] == ["case.py"]
