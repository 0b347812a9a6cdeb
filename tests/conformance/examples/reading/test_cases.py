"""The form of cases of a user's own: what their comments say, and what of them is refused."""

from __future__ import annotations

import pytest

from shim.conformance.examples.example import EVERY_RANK, Step
from shim.conformance.examples.reading.cases import CaseError, examples_of_case, is_case, marker_in

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
# shows on ranks 1, 3: b
x.no_such()  # raises
print(1); print("# shows: 2")  # shows: 2
x.other(
    1
)  # raises AttributeError
x.third()
# raises on rank 0: ValueError
# raises on ranks 1, 2
# raises: TypeError
"""


def steps_of(text: str) -> tuple[Step, ...]:
    return examples_of_case("# ranks: 2\nimport torch\n" + text, "case.py")[0].steps[1:]


def problems_of(text: str) -> tuple[tuple[int, str], ...]:
    with pytest.raises(CaseError) as caught:
        examples_of_case(text, "case.py")
    return caught.value.problems


def test_a_case_says_what_it_shows_and_how_often_it_runs() -> None:
    two, four = examples_of_case(CASE, "case.py")
    assert (two.ranks, four.ranks, two.name, four.name) == (2, 4, "case.py", "case.py#2")
    assert (two.framework, two.place, two.is_case) == ("torch", "case.py, line 1", True)
    assert [step.line for step in two.steps] == [2, 4, 5, 8, 13, 14, 14, 15, 18]
    first, second, third = [step.wanted.text for step in two.steps if step.wanted is not None]
    assert first[EVERY_RANK].split() == ["tensor([1.,", "1.])"]
    assert {rank: text.split() for rank, text in second.items()} == {0: ["a", "a"], 1: ["b"], 3: ["b"]}
    assert third == {EVERY_RANK: "2"}
    assert [step.errors for step in two.steps if step.errors] == [
        {EVERY_RANK: ""},
        {EVERY_RANK: "AttributeError"},
        {0: "ValueError", 1: "", 2: "", EVERY_RANK: "TypeError"},
    ]
    assert not any(step.raises for step in two.steps)


def test_statements_on_one_line_are_steps_of_their_own() -> None:
    assert [step.source for step in steps_of("x = 1; print(x)  # shows: 1\n")] == ["x = 1", "print(x)"]


def test_a_form_feed_ends_no_line() -> None:
    first, second = steps_of("x = 1\n\x0c\nprint(x)\n# shows: 1\n")
    assert (second.source, second.line) == ("print(x)", 5)
    assert first.source == "x = 1"


def test_the_error_of_each_rank() -> None:
    *_, step = examples_of_case(CASE, "case.py")[1].steps
    assert [step.error_on(rank) for rank in range(4)] == ["ValueError", "", "", "TypeError"]
    (silent,) = steps_of("f()  # raises on rank 1\n")
    assert [silent.error_on(rank) for rank in range(2)] == [None, ""]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (CASE, True),
        ("\n" + CASE, True),
        ("#!/usr/bin/env python3\n# A licence\n\n" + CASE, True),
        ("# ranks: many\n", True),
        ("#Rank: 2\n", True),
        ("import torch\n" + CASE, False),
        ("# rank 0 sends\n", False),
        ("", False),
    ],
)
def test_a_case_begins_with_its_ranks(text: str, answer: bool) -> None:
    assert is_case(text) is answer


GOOD = "print(1)\n# shows: 1\n"
MALFORMED = {
    "# ranks: many\nimport torch\n" + GOOD: (1, "ranks has the form # ranks: 2, 4"),
    "# ranks: 2,\nimport torch\n" + GOOD: (1, "ranks has the form"),
    "# ranks:\nimport torch\n" + GOOD: (1, "ranks has the form"),
    "# rank: 2\nimport torch\n" + GOOD: (1, "'rank' is no marker; ranks has the form # ranks: 2, 4"),
    "# ranks: 0, 2\nimport torch\n" + GOOD: (1, "a case is for 1 rank or more"),
    "# ranks: 2\nimport torch\n# ranks: 3\n" + GOOD: (3, "for how many ranks a case is, it says once"),
    "# ranks: 2\n# shows: 1\nimport torch\n" + GOOD: (2, "there is no statement before it that shows anything"),
    "# ranks: 2\n# raises\nimport torch\n" + GOOD: (2, "there is no statement before it that raises anything"),
    "# ranks: 2\nimport torch\nprint(1)\n# show: 1\n": (4, "'show' is no marker; shows has the form # shows: TEXT,"),
    "# ranks: 2\nimport torch\nprint(1)\n# Shows on rank 0: 1\n" + GOOD: (4, "'Shows' is no marker"),
    "# ranks: 2\nimport torch\nprint(1)\n# shows 1\n" + GOOD: (4, "shows has the form"),
    "# ranks: 2\nimport torch\nprint(1)\n# shows on rank zero: 1\n" + GOOD: (4, "shows has the form"),
    "# ranks: 2\nimport torch\nprint(1)\n# shows on rank 2: 1\n" + GOOD: (4, "there is no rank 2 of 2"),
    "# ranks: 2\nimport torch\nf()  # raises a ValueError\n" + GOOD: (3, "raises has the form # raises,"),
    "# ranks: 2\nimport torch\nf()  # raise ValueError\n" + GOOD: (3, "'raise' is no marker; raises has the form"),
    "# ranks: 2\nimport torch\nf()  # raised\n" + GOOD: (3, "'raised' is no marker"),
    "# ranks: 2\nimport torch\nf()  # raises\n# raises: ValueError\n": (4, "what the statement raises is said twice"),
    "# ranks: 2\nimport torch\nif 1:\n    print(1)\n    # shows: 1\n    print(2)\n" + GOOD: (
        5,
        "shows stands inside the statement of line 3, and belongs after it",
    ),
    "# ranks: 2\nimport torch\nprint(1)\n": (1, "the case shows nothing and raises nothing, so that it cannot fail"),
    "# ranks: 2\n" + GOOD: (1, "which framework the case is for cannot be told: it imports none of torch, paddle"),
    "# ranks: 2\nimport torch, paddle.distributed\n" + GOOD: (1, "cannot be told: it imports paddle and torch"),
    "# ranks: 2\nimport torch\nprint(\n" + GOOD: (3, "'(' was never closed"),
}


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_case_is_refused(text: str) -> None:
    line, told = MALFORMED[text]
    assert any(at == line and told in problem for at, problem in problems_of(text)), problems_of(text)


def test_all_that_is_wrong_is_told_in_order() -> None:
    text = "# ranks: 2\nprint(1)\n# show: 1\nf()  # raises twice over\n"
    assert [line for line, _ in problems_of(text)] == [1, 1, 3, 4]


@pytest.mark.parametrize(
    "remark", ["# rank 0 sends: it is first", "# note: x", "# type: ignore", "# trains: 2", "# x", "#", "# rank", "# shape: (2, 3)"]
)  # fmt: skip
def test_a_remark_is_no_marker(remark: str) -> None:
    assert marker_in(remark) is None


def test_an_assert_is_enough() -> None:
    (step,) = steps_of("assert torch\n")
    assert step.source == "assert torch"


def test_a_comment_in_a_text_is_none() -> None:
    (step,) = steps_of('assert """\n# shows: 1\n"""\n')
    assert step.wanted is None
