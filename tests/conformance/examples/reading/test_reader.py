"""How documents are taken apart into examples, their steps, and what is shown after them."""

from __future__ import annotations

import pytest

from shim.conformance.examples.example import EVERY_RANK, Example
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.rank import see_example


def read(text: str) -> list[Example]:
    return examples_in(text, "torch", "torch.distributed.all_reduce", "a test")


def only(text: str) -> Example:
    (example,) = read(text)
    return example


def sources(example: Example) -> list[str]:
    return [step.source for step in example.steps]


def shown(example: Example) -> list[dict[int, str] | None]:
    return [None if step.wanted is None else dict(step.wanted.text) for step in example.steps]


PROMPTS = """
Sum over the ranks.

Example::

    >>> x = [
    ...     1,
    ... ]
    >>> for i in x:
    >>>     print(i)
    1
    >>> x
    [1] # Rank 0
    [2] # Rank 1

    Words after the example.
"""


def test_prompts() -> None:
    example = only(PROMPTS)
    assert sources(example) == ["x = [\n    1,\n]", "for i in x:\n    print(i)", "x"]
    assert [step.line for step in example.steps] == [6, 9, 12]
    assert [text and {rank: value.strip() for rank, value in text.items()} for text in shown(example)] == [
        None,
        {EVERY_RANK: "1"},
        {0: "[1]", 1: "[2]"},
    ]
    assert (example.name, example.ranks) == ("torch.distributed.all_reduce", 2)


def test_a_block_of_code() -> None:
    example = only(
        ".. code-block:: python\n\n    x = f()  # f is ours\n    print(x)\n    # [1] (2 GPUs, out for rank 0)\n"
        "    # [2] (2 GPUs, out for rank 1)\n\nNo code.\n"
    )
    assert sources(example) == ["x = f()  # f is ours", "print(x)"]
    assert shown(example) == [None, {0: "[1]", 1: "[2]"}]


def test_comments_show_something_between_prompts_too() -> None:
    example = only(">>> x = f()\n>>> # x for rank 0: [1]\n>>> # x for rank 1: [2]\n>>> # now the next\n>>> y = 1\n")
    assert shown(example) == [{0: "[1]", 1: "[2]"}, None]


def test_a_heading_begins_another_example() -> None:
    first, second = read("Example::\n    >>> x = 1\n\nExample 2::\n    >>> x\n")
    assert (first.name, second.name) == ("torch.distributed.all_reduce", "torch.distributed.all_reduce#2")
    assert sources(second) == ["x"]


def test_sections() -> None:
    example = only(">>> x = 1\n>>> # Another example with lists\n>>> x = [1]\n>>> x = [2]\n")
    assert [step.section for step in example.steps] == [0, 1, 1]


def test_the_rank_that_a_comment_speaks_of() -> None:
    example = only(">>> x = f()\n>>> # Rank i gets x[i]. For example, on rank 2:\n>>> x\n[3]\n>>> x\n[4]\n")
    assert shown(example) == [None, {2: "[3]"}, {EVERY_RANK: "[4]"}]
    assert example.ranks == 3


def test_code_for_one_process_only() -> None:
    example = only(">>> # Run on process 1 (server)\n>>> x = 1\n>>> # Use it from either\n>>> y = 2\n")
    assert [step.ranks for step in example.steps] == [frozenset({0}), None]


def test_code_that_is_to_raise() -> None:
    example = only(">>> f() # Raises exception\n>>> g() # raises no objection\n")
    assert [step.raises for step in example.steps] == [True, False]


def test_what_is_shown_after_a_gap() -> None:
    example = only(
        ">>> f()\n\n# Print result in process 1:\nrank: 0\n\n# Print result in process 2:\nrank: 1\n\nWords.\n"
    )
    assert shown(example) == [{EVERY_RANK: "rank: 0\nrank: 1"}]


def test_words_after_a_gap_are_not_shown() -> None:
    assert shown(only(">>> f()\n\nwords of the document\n# a remark\n")) == [None]


def test_text_without_code_is_no_example() -> None:
    assert read("No prompt and no block.\n") == []
    assert read(">>> # a comment alone\n") == []


def test_the_fingerprint_is_the_texts() -> None:
    assert only(">>> x = 1\n").fingerprint == only("words\n\n>>> x = 1\n").fingerprint
    assert only(">>> x = 1\n").fingerprint != only(">>> x = 2\n").fingerprint
    assert only(">>> x\n[1]\n").fingerprint != only(">>> x\n[2]\n").fingerprint


def test_prompts_hide_no_block_of_code() -> None:
    block = ".. code-block:: python\n\n    {}\n\nText.\n\n"
    examples = read(block.format("...") + block.format(">>> x = 1") + block.format("y = 2"))
    assert [sources(example) for example in examples] == [["..."], ["x = 1"], ["y = 2"]]
    assert [example.number for example in examples] == [1, 2, 3]


@pytest.mark.parametrize("text", ["Text.\n\n>>> x = 1\n>>> f(x\n", ".. code:: python\n\n    x = 1\n    f(x\n"])
def test_what_is_no_python_is_an_example_that_fails(text: str) -> None:
    example = only(text)
    assert sources(example) == ["x = 1\nf(x"]
    with pytest.raises(SyntaxError, match="never closed"):
        see_example(example, 0)
    broken: list[tuple[int, str]] = []
    assert examples_in(text, "torch", "function", "a test", broken) == []
    assert broken == [(4, "'(' was never closed")]
