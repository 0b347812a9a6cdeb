"""Every value that the installed documents show is compared: one that is corrupted is noticed, on the rank it is shown for.

Of the examples that pass on two ranks, each text that is shown is corrupted by itself, in its last number or word.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import Verdict, read_records
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.running.programs import is_program
from shim.conformance.examples.running.runner import run_examples
from shim.substitution.mirrors import version_of

pytestmark = pytest.mark.frameworks

PLACE = re.compile(r",?\s*(device='[^']*'|place=Place\([^)]*\))")  # is not compared
FEWEST = 30  # texts that each framework shows


def corrupted(text: str) -> str:
    text = PLACE.sub("", text)
    found = list(re.finditer(r"(?<![\w.])\d+(?!\w)", text)) or list(re.finditer(r"\d+", text))
    if found:
        last = found[-1]
        return f"{text[: last.start()]}{int(last[0]) + 1}{text[last.end() :]}"
    (*_, last) = re.finditer(r"\w+|$", text)
    return f"{text[: last.end()]}x{text[last.end() :]}"


def corruptions_of(example: Example) -> Iterator[Example]:
    for index, step in enumerate(example.steps):
        for rank, text in step.wanted.text.items() if step.wanted is not None else ():
            wanted = dataclasses.replace(step.wanted, text={**step.wanted.text, rank: corrupted(text)})
            steps = (*example.steps[:index], dataclasses.replace(step, wanted=wanted), *example.steps[index + 1 :])
            yield dataclasses.replace(example, steps=steps, place=f"line {step.line}, rank {rank}: {corrupted(text)}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]", "[1, 3]"),
        ("[1., 2.]", "[1., 3.]"),
        ("tensor([1], device='cuda:0')", "tensor([2])"),
        ("True", "Truex"),
        ("[]", "[]x"),
    ],
)
def test_what_a_corruption_is(text: str, expected: str) -> None:
    assert corrupted(text) == expected


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "framework",
    ["torch", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("paddle", "mindspore"))],
)
def test_every_value_shown_is_compared(framework: str, every: int) -> None:
    records = read_records(framework, version_of(framework))
    examples = [
        corruption
        for example in installed_examples(framework)
        if example.ranks == 2 and not is_program(example) and records[example.name].verdict is Verdict.PASS
        for corruption in corruptions_of(example)
    ]
    assert len(examples) >= FEWEST
    outcomes = run_examples(examples[::every])
    unnoticed = [f"{seen.example.name}, {seen.example.place}" for seen in outcomes if seen.passed]
    assert unnoticed == []
