"""What documents claim by comments beside code and by blocks of output, and what they only remark."""

from __future__ import annotations

import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from shim.conformance.examples.example import EVERY_RANK, Example
from shim.conformance.examples.judging import Verdict, verdict_of_end
from shim.conformance.examples.reading.files import examples_in_files
from shim.conformance.examples.reading.printed_values import is_value, value_in
from shim.conformance.examples.running.rank import see_example
from shim.conformance.examples.running.runner import Outcome, outcome_of
from shim.frontends.torch._groups.registry import handed_out
from shim.launch.pool import Outcome as Answer

BEGIN = "import torch\nx = torch.ones(2)\n"


@pytest.fixture(autouse=True)
def no_world_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples leave their world behind, here in pytest's own process."""
    monkeypatch.setattr(handed_out, "world", None)


def example_of(folder: Path, text: str, suffix: str = "md") -> Example:
    file = folder / f"page.{suffix}"
    file.write_text(text, encoding="utf-8")
    (example,) = examples_in_files([file]).examples
    return example


def claimed(folder: Path, code: str) -> list[str]:
    """Return what the document claims of each statement of *code* of which it claims anything."""
    example = example_of(folder, f"```python\n{BEGIN}{textwrap.dedent(code)}\n```\n")
    return [step.wanted.text[EVERY_RANK] for step in example.steps if step.wanted is not None]


@pytest.mark.parametrize(
    ("code", "claims"),
    [
        ("print(x)  # tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("print(x)\n# tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("print(x)\n# tensor([[9.,\n#          8.]])", ["tensor([[9.,\n         8.]])"]),
        ("print(x.numpy())  # [9. 9.]", ["[9. 9.]"]),
        ("print(x)  # -> tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("x  # => tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("print('a b')\n# Output:\n# a b\n# c", ["a b\nc"]),
        ("print('a b')\n# Expected output: a b", ["a b"]),
        ("for i in range(2):\n    print(i)\n# prints: 0\n# 1", ["0\n1"]),
        ("if True:\n    print(1)  # 1\n    print(2)\n    # 2", ["1\n2"]),
        ("print(x[0], {'a': [-1, nan]})  # (1, {'a': [-1, nan]})", ["(1, {'a': [-1, nan]})"]),
        ("print(1 + 2j)  # 1+2j", ["1+2j"]),
        ("print(x)  # prints tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("print(3)  # should print 3.", ["3."]),
        ("print('a b')  # prints 'a b'", ["a b"]),
        ("print('a b')  # expected: a b", ["a b"]),
        ("print(x)  # Expected output is [9, 9]", ["[9, 9]"]),
        ("print(x)\n# Expected [9, 9]", ["[9, 9]"]),
        ("print(x)  # x = tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("print(x)  # ==> [9, 9]", ["[9, 9]"]),
        ("x + 1  # Out[3]: [9, 9]", ["[9, 9]"]),
        ("print(x)  # [9, 9] on every rank", ["[9, 9]"]),
        ("print(x)  # [9, 9] (all ranks)", ["[9, 9]"]),
        ("print(x)  # tensor([[9.,\n          #         9.]])", ["tensor([[9.,\n        9.]])"]),
        ("y = x + 1  # tensor([9., 9.])", ["tensor([9., 9.])"]),
        ("y: object = x + 1  # is [9, 9]", ["[9, 9]"]),
        ("x += 1  # x is now [9, 9]", ["[9, 9]"]),
        ("x.add_(1)  # x: [9, 9]", ["[9, 9]"]),
        ("f(x)\n# Expected: [9, 9]", ["[9, 9]"]),
        ("y = 1  # 2", []),
        ("y = [2, 3]  # [2]", []),
        ("y = f()  # -> the sum", []),
        ("f(x)  # expected: no error", []),
        ("f(y)  # x is now [9, 9]", []),
        ("import torch  # 2.1", []),
        ("print(x)  # Paddle: Tensor(shape=[1], dtype=float32)", []),
        ("print(x)  # the sum of all", []),
        ("print(x)  # x", []),
        ("print(x)  # [1, ..., 9]", []),
        ("print('a')  # 'a'", []),
        ("if True:\n    print(1)  # 1\n    print(2)", []),  # a claim of half a statement says nothing of it
        ("def f():\n    print(x)  # 3\nf()", []),
        ("x.add_(1)\n\n# 3", []),
        ("y = '# -> 3'", []),
    ],
)
def test_comments_that_claim(code: str, claims: list[str], tmp_path: Path) -> None:
    assert claimed(tmp_path, code) == claims


@pytest.mark.parametrize(
    "comment",
    [
        "rank 0: [0], rank 1: [1]",
        "[0] on rank 0 and [1] on rank 1",
        "[0] (rank 0) / [1] (rank 1)",
        "Rank 0 prints [0]; rank 1 prints [1].",
        "rank 0 -> [0], rank 1 -> [1]",
        "Output on rank 0: [0], on rank 1: [1]",
    ],
)
def test_values_of_ranks_in_one_comment(comment: str, tmp_path: Path) -> None:
    steps = example_of(
        tmp_path, f"```python\n{BEGIN}print(x)  # {comment}\ny = x + 1  # tensor([2]) # Rank 1\n```\n"
    ).steps
    of_ranks = [step.wanted.text for step in steps if step.wanted is not None]
    assert of_ranks == [{0: "[0]", 1: "[1]"}, {1: "tensor([2])"}]


@pytest.mark.parametrize(
    "code",
    [
        "print('a')  # prints a  <-",
        "print(x)  # prints 3, the sum  <-",
        "print(x)  # 6 = 1 + 2 + 3  <-",
        "print(x)  # [1, ..., 9]  <-",
        "print(x)  # Paddle: Tensor(shape=[1], dtype=float32)  <-",
        "f(x)  # expected: no error  <-",
        "y = f()  # -> the sum  <-",
        "y = [2, 3]  # [2]  <-",
        "y = f()\n# tensor([1.])  <-",
        "# Expected: 3  <-\nprint(3)",
        "def f():\n    print(x)  # tensor([1.])  <-\n    # Output: 3  <-",
        "for y in x:\n    print(y)  # 3  <-",
        "if True:\n    print(1)  # 1  <-\n    print(2)",
        "print(x)  # tensor([1.])\nx = 3  # 4\n# the sum on rank 0\n# y = torch.tensor([1])\nf(x)  # 3 ranks",
    ],
)
def test_comments_that_look_like_outputs_and_are_not_read(code: str, tmp_path: Path) -> None:
    marked = [number for number, line in enumerate(code.splitlines(), start=4) if "<-" in line]
    page = f"```python\n{BEGIN}{code.replace('  <-', '')}\n```\n"
    assert list(example_of(tmp_path, page).unread) == marked


@pytest.mark.parametrize(
    ("after", "output"),
    [
        ("\nOutput:\n\n```\na\nb\n```\n", "a\nb"),
        ("\nThis prints\non two lines:\n\n```text\na\n```\n", ""),
        ("\nIt runs on two lines and prints\n\n```text\na\n```\n", "a"),
        ("```text\na\n```\n", "a"),
        ("```console\n$ python x.py\na\n```\n", "a"),
        ("\n```output\na\n```\n", "a"),
        ("\nSee also.\n\n```text\na\n```\n", ""),
        ("```json\n1\n```\n", ""),
        ("```\na\n```\n", ""),
        ("\nOutput:\n\nMore.\n\n```text\na\n```\n", ""),
    ],
)
def test_blocks_of_output(after: str, output: str, tmp_path: Path) -> None:
    assert example_of(tmp_path, f"```python\n{BEGIN}```\n{after}").output == output


def test_blocks_of_output_in_restructuredtext(tmp_path: Path) -> None:
    code = f".. code-block:: python\n\n{textwrap.indent(BEGIN, '    ')}\n"
    assert example_of(tmp_path, f"{code}.. testoutput::\n\n    a\n    b\n\nText\n", "rst").output == "a\nb"
    assert example_of(tmp_path, f"{code}Output:\n\n.. code-block:: text\n\n    a\n", "rst").output == "a"


def test_a_block_without_a_language_is_read_where_it_is_python_and_imports_a_framework(tmp_path: Path) -> None:
    page = "```\nimport torch.distributed\n```\n\n```\nimport torch is not Python\n```\n"
    assert [step.source for step in example_of(tmp_path, page).steps] == ["import torch.distributed"]
    page = "```\nimport shim.frontends.paddle_3.distributed as dist\n```\n"
    assert example_of(tmp_path, page).framework == "paddle"


def verdict_of(example: Example) -> tuple[Verdict, list[str]]:
    """Run *example* on one rank, this process, and return its verdict and what failed."""
    answer = Answer(0, see_example(example, 0), None)
    outcome = outcome_of(example, [answer], 0.0)
    return verdict_of_end(outcome), [text for _, _, text in outcome.failures]


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("code", "verdict", "failure"),
    [
        ("print(x)", Verdict.RAN, ""),
        ("y = x + 1  # tensor([2., 2.])", Verdict.PASS, ""),
        ("y = x + 1  # tensor([3., 2.])", Verdict.FAIL, "shown:\n  tensor([3., 2.])\nseen:\n  tensor([2., 2.])"),
        ("print('b')\ny = torch.ones(2, 3)  # (2, 3)", Verdict.PASS, ""),
        ("y = torch.ones(2, 3)  # (3, 2)", Verdict.FAIL, "shown:\n  (3, 2)\nseen:\n  (2, 3)"),
        ("y = torch.ones(2, 3)  # torch.Size([2, 3])", Verdict.PASS, ""),
        ("y = torch.ones(2, 3)  # torch.Size([6])", Verdict.FAIL, "shown:\n  torch.Size([6])\nseen:\n  (2, 3)"),
        ("y = torch.tensor(7.)  # ()", Verdict.PASS, ""),
        ("x += 1  # [2, 3]", Verdict.FAIL, "shown:\n  [2, 3]"),
        ("x += 1\n# Output: tensor([2., 3.])", Verdict.FAIL, "shown:\n  tensor([2., 3.])"),
        (
            "y = [x, x]  # [tensor([1., 1.]), tensor([1., 2.])]",
            Verdict.FAIL,
            "shown:\n  [tensor([1., 1.]), tensor([1., 2.])]",
        ),
        ("y = x[:1]\ny.copy_(y + 6)\ndef f(y):\n    y += 1\nf(y)  # [1]", Verdict.FAIL, "seen:\n  tensor([8.])"),
        ("y = x[:1]\ndef f(y):\n    y += 1\nf(y)  # y is now [1]", Verdict.FAIL, "seen:\n  tensor([2.])"),
        ("def f(y):\n    print(y + 1)\nf(x)  # tensor([2., 2.])", Verdict.PASS, ""),
        ("def f(y):\n    print(y + 1)\nf(x)  # prints [1, 1]", Verdict.FAIL, "seen:\n  tensor([2., 2.])"),
        ("def f(y):\n    print(y + 1)\ny = f(x)\n# Output: [1, 1]", Verdict.FAIL, "seen:\n  tensor([2., 2.])"),
        ("def f(y):\n    print('b')\n    return y\ny = f(torch.ones(2, 3))  # (2, 3)", Verdict.PASS, ""),
        ("def f(y):\n    print('b')\n    print(2)\nf(x)\n# Output: 2", Verdict.FAIL, "seen:\n  b\n  2"),
        ("x.tolist()  # [1, 2]", Verdict.FAIL, "shown:\n  [1, 2]"),
        ("def f(y):\n    print('b')\n    return y\nx += f(1)  # [2, 2]", Verdict.PASS, ""),
        ("torch.nn.init.ones_(x)  # [1, 1]", Verdict.PASS, ""),
        ("print(x)  # tensor([1., 1.])", Verdict.PASS, ""),
        ("assert x.sum() == 2", Verdict.PASS, ""),
        ("torch.testing.assert_close(x, x)", Verdict.PASS, ""),
        ("print('b')\n```\n\nOutput:\n\n```\nb", Verdict.PASS, ""),
        ("print(x)  # tensor([9., 1.])", Verdict.FAIL, "shown:\n  tensor([9., 1.])\nseen:\n  tensor([1., 1.])"),
        ("print('b')\n```\n\nOutput:\n\n```\nb\nc", Verdict.FAIL, "shown:\n  b\n  c\nprinted:\n  b"),
        ("print('b')\n```\n\nOutput:\n\n```\nb\nb", Verdict.FAIL, "shown:\n  b\n  b\nprinted:\n  b"),
    ],
)
def test_what_claims_nothing_does_not_pass_and_differences_show_both_texts(
    code: str, verdict: Verdict, failure: str, tmp_path: Path
) -> None:
    example = example_of(tmp_path, f"```python\n{BEGIN}{code}\n```\n")
    seen, failures = verdict_of(replace(example, framework="none"))
    assert seen is verdict
    assert bool(failures) == bool(failure)
    assert all(failure in text for text in failures)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "code",
    [
        "y = torch.tensor([7.])  # [1]  <-",
        "y = torch.tensor([7., 9.])  # [2]  <-",
        "y = torch.tensor(7.)  # []  <-",
        "y = torch.ones(3)  # 3  <-",
        "y = torch.ones(3)  # [3]  <-",
        "y = torch.ones(2, 3)  # [2, 3]  <-",
        "y = torch.ones(3)  # (1)  <-",
        "class T:\n    shape = 3\ny = T()  # [3]  <-\ny = T()  # (3,)  <-",
        "y = list(map(str, [0, 1]))  # [0, 1]  <-",
        "y = torch.Generator()  # contains [0, 1]  <-",
        "y = torch.manual_seed(0)  # 0  <-",
        "torch.manual_seed(0)  # 0  <-",
        "torch.set_num_threads(torch.get_num_threads())  # 1  <-",
        "def f():\n    print(7)\nf()  # 1  <-",
        "x.add_(1)  # 1  <-",
        "x.add_(1)  # -> in place  <-",
        "y = []\ny.append(2)  # 2  <-\ny.append(x)  # tensor([1., 1.])  <-",
        "y = [2]\ny[0] = 3\n# -> sets it  <-",
    ],
)
def test_what_may_be_a_remark_is_neither_right_nor_wrong(code: str, tmp_path: Path) -> None:
    marked = [number for number, line in enumerate(code.splitlines(), start=4) if "<-" in line]
    page = f"```python\n{BEGIN}{code.replace('  <-', '')}\n```\n"
    example = replace(example_of(tmp_path, page), framework="none")
    outcome = outcome_of(example, [Answer(0, see_example(example, 0), None)], 0.0)
    assert (verdict_of_end(outcome), outcome.failures) == (Verdict.RAN, ())
    assert sorted({*example.unread, *outcome.unread}) == marked


def test_a_program_whose_variables_nobody_sees_claims_nothing(tmp_path: Path) -> None:
    start = "if __name__ == '__main__':\n    torch.spawn(print)"
    example = example_of(tmp_path, f"```python\n{BEGIN}y = x + 1  # tensor([9., 9.])\nprint()  # 1\n{start}\n```\n")
    outcome = Outcome(example, (), (), 0.0, printed="")
    assert (outcome.unread, outcome.claims) == ({4}, True)
    silent = replace(example, steps=tuple(step for step in example.steps if "print()" not in step.source))
    assert not replace(outcome, example=silent).claims


@pytest.mark.parametrize(
    "text",
    [
        "A" * 6000,
        "[1, " * 1500,
        "rank " * 1200,
        "rank 0: [" + "1, " * 2000,
        "output" + " " * 9000 + "x",
        "x" + " " * 9000 + "y",
    ],
)
def test_long_comments_are_read_in_a_moment(text: str) -> None:
    begin = time.process_time()
    assert value_in(text) is None
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize("limit", [sys.getrecursionlimit(), 1_000_000])  # which frameworks raise
def test_text_that_is_nested_too_deeply_is_no_value(limit: int) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        assert not any(map(is_value, ["- " * 4000 + "1", "- " * 5000 + "1", "(" * 5000]))
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.frameworks
def test_every_wrong_claim_is_told(tmp_path: Path) -> None:
    code = "print(1)  # 2\nprint(2)  # 2\nx += 1  # tensor([3., 2.])\nprint(4)  # prints 5"
    example = example_of(tmp_path, f"```python\n{BEGIN}{code}\n```\n")
    outcome = outcome_of(example, [Answer(rank, see_example(example, rank), None) for rank in (0, 1)], 0.0)
    told = [(rank, line, text.splitlines()[0].partition(";")[0]) for rank, line, text in outcome.failures]
    of_one = [(4, "item 1: shown 2, seen 1"), (6, "item 4: shown 3., seen 2."), (7, "item 1: shown 5, seen 4")]
    assert told == [(rank, *failure) for rank in (0, 1) for failure in of_one]


@pytest.mark.frameworks
def test_every_line_that_is_not_printed_is_told(tmp_path: Path) -> None:
    example = example_of(tmp_path, f"```python\n{BEGIN}print('b')\n```\n\nOutput:\n\n```\na\nb\nc\n```\n")
    seen, failures = verdict_of(example)
    assert seen is Verdict.FAIL
    assert failures[0] == "shown, and not printed by any process: a"
    assert failures[1] == "shown, and not printed by any process: c\nshown:\n  a\n  b\n  c\nprinted:\n  b"
