"""What counts as the same as a document shows, what an example does not wait for, and that every value shown is compared."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import numpy
import pytest

from shim.conformance.examples.comparing import Output, all_differences, differs, output_of, unwaited
from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import Verdict, read_records
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.running.programs import is_program
from shim.conformance.examples.running.runner import run_examples
from shim.record.releases import version_of


class Framed:
    """A tensor that a framework prints with a header."""

    def __init__(self, elements: list[complex]) -> None:
        self.elements = numpy.array(elements)
        self.shape = self.elements.shape

    def numpy(self) -> numpy.ndarray:
        return self.elements

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, dtype=int64, place=Place(cpu),\n       {self.elements.tolist()})"


def seen(*things: object) -> Output:
    return output_of(" ".join(map(str, things)), things)


SAME = {
    "numbers": ("[1., 2.]", "[1, 2]"),
    "complex numbers": ("tensor([1+1j, 2+2j])", "tensor([1.+1.j, 2.+2.j])"),
    "spaces and commas": ("[[0., 0.], [1., 1.]]", "[[0. 0.]\n [1. 1.]]"),
    "quotes": ('["hello", {"key": 100}]', "['hello', {'key': 100}]"),
    "places": ("tensor([0, 0], device='cuda:0')", "tensor([0, 0])"),
    "four digits of more": ("0.3333", "0.33333334"),
    "many digits and few": ("1234.5", "1234.50001"),
    "powers of ten": ("1.0000e+06", "1000000.1"),
    "not a number": ("nan", "nan"),
}
OTHER = {
    "a number": ("[1, 2]", "[1, 3]"),
    "a number, by one in many": ("100000", "100001"),
    "a number, by little": ("1.5", "1.5001"),
    "a sign": ("-1", "1"),
    "an imaginary part": ("[1+1j]", "[1+2j]"),
    "the order": ("[1, 2]", "[2, 1]"),
    "brackets": ("[[1, 2]]", "[1, 2]"),
    "a bracket that is missing": ("[[1], [2]]", "[[1, 2]]"),
    "less": ("[1, 2]", "[1]"),
    "more": ("[1]", "[1, 2]"),
    "nothing": ("[1]", ""),
    "a word": ("True", "False"),
    "a string for a number": ("['1']", "[1]"),
    "a kind": ("[tensor([0, 0])]", "tensor([0, 0])"),
    "a data type": ("tensor([1], dtype=float16)", "tensor([1], dtype=float32)"),
    "a key": ("{'foo': 1}", "{'bar': 1}"),
    "NaN for a number": ("nan", "1."),
    "infinity for a number": ("[2.0]", "[inf]"),
    "infinity for a power of ten": ("1e3", "inf"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_is_the_same(what: str) -> None:
    wanted, text = SAME[what]
    assert differs(wanted, [Output(text, text)]) is None


@pytest.mark.parametrize("what", OTHER)
def test_what_is_not(what: str) -> None:
    wanted, text = OTHER[what]
    assert differs(wanted, [Output(text, text)]) is not None


@pytest.mark.parametrize(
    ("wanted", "things"),
    [
        ("[1, 2]", [Framed([1, 2])]),
        ("paddle.tensor([1, 2])", [Framed([1, 2])]),
        ("Tensor(shape=[2], dtype=int64, place=Place(gpu:0), [1, 2])", [Framed([1, 2])]),
        ("[[1, 2], [3]]", [[Framed([1, 2]), Framed([3])]]),
        ("[1, 2] [3]", [Framed([1, 2]), Framed([3])]),
        ("{'a': [1]}", [{"a": Framed([1])}]),
        ("[1+1j]", [Framed([1 + 1j])]),
        ("sum: [3]", ["sum:", Framed([3])]),
    ],
)
def test_elements_of_tensors(wanted: str, things: list[object]) -> None:
    assert differs(wanted, [seen(*things)]) is None


@pytest.mark.parametrize(
    ("wanted", "things"),
    [
        ("[1, 3]", [Framed([1, 2])]),
        ("[[1, 2]]", [Framed([1, 2])]),
        ("tensor([1, 2])", [[1, 2]]),
        ("[1, 2] [3]", [[Framed([1, 2]), Framed([3])]]),
        ("Tensor(shape=[2], dtype=int32, [1, 2])", [Framed([1, 2])]),
        ("[tensor([1, 2])]", [Framed([1, 2])]),
    ],
)
def test_elements_of_tensors_are_compared(wanted: str, things: list[object]) -> None:
    assert differs(wanted, [seen(*things)]) is not None


class Torchs(Framed):
    """A tensor that torch prints, which is not of the default dtype."""

    def __repr__(self) -> str:
        return f"tensor({self.elements.tolist()}, dtype=torch.int32)"


@pytest.mark.parametrize("things", [[Torchs([1, 2])], [[Torchs([1, 2])]], ["sum:", Torchs([1, 2])]])
def test_what_torch_prints_is_shown_whole_where_it_is_exact(things: list[object]) -> None:
    shown = " ".join(map(str, things))
    assert differs(shown, [seen(*things)], exact=True) is None
    without = shown.replace(", dtype=torch.int32", "")
    assert differs(without, [seen(*things)]) is None
    assert "dtype" in str(differs(without, [seen(*things)], exact=True))


@pytest.mark.parametrize(("wanted", "thing"), [("[1, 2]", Torchs([1, 2])), ("paddle.tensor([1, 2])", Framed([1, 2]))])
def test_elements_alone_are_compared_where_they_are_shown_alone(wanted: str, thing: object) -> None:
    assert differs(wanted, [seen(thing)], exact=True) is None


def test_a_document_may_leave_out_what_was_printed_before() -> None:
    assert differs("[2]", [seen("before"), seen([2])], own=1) is None
    assert differs("[1]\n[2]", [seen("before"), seen([1]), seen([2])], own=1) is None


def test_nothing_of_the_last_code_may_be_left_out() -> None:
    assert differs("[2]", [seen([1]), seen([2])], own=2) is not None
    assert differs("[1]", [seen([1]), seen([2])], own=1) is not None
    assert differs("[1]\n[2]", [seen([0]), seen([2])], own=1) is not None


def test_what_was_printed_before_counts_where_the_code_prints_nothing() -> None:
    assert differs("[2]", [seen([1]), seen([2])], own=0) is None
    assert differs("[1]", [seen([1]), seen([2])], own=0) is not None
    assert str(differs("[1]", [], own=0)).startswith("shown, not seen: [ 1 ]")


def test_the_difference_is_told() -> None:
    assert str(differs("[1, 2]", [seen([1, 3])])).startswith("item 3: shown 2, seen 3")
    assert str(differs("[1]", [seen([1]), seen("more")], own=2)).startswith("seen, not shown: more")


TOLD = {
    "one": ("( 1 2 )", "( 1 3 )", "in all: 2 for 3"),
    "brackets": ("( 1 2 )", "[ 1 2 ]", "in all: ( for [, ) for ]"),
    "left out": ("shape [ 2 ]", "shape = [ 2 ]", "in all: nothing for ="),
    "too much": ("[ 1 ] [ 1 ]", "[ 1 ]", "in all: [ 1 ] for nothing"),
    "numbers alike": ("[ 1.0 2e0 ) x", "[ 1 2. ] x", "in all: ) for ]"),
    "a long one": ("x", "1 2 3 4 5 6 7 8 9", "in all: x for 1 2 3 4 5 6 7 8 ..."),
    "many": (" - ".join("abcdefgh"), " - ".join("klmnopqr"), "in all: a for k, b for l, c for m, d for n, e for o, f for p, 2 more"),
}  # fmt: skip


@pytest.mark.parametrize("what", TOLD)
def test_differences_told(what: str) -> None:
    shown, seen, expected = TOLD[what]
    assert all_differences(shown.split(), seen.split()) == expected


class Handle:
    def wait(self, timeout: float = 0) -> None: ...


class Store:
    def wait(self, keys: list[str]) -> None: ...


def test_a_handle_is_found() -> None:
    assert unwaited({"x": 1, "handle": Handle()}, ["handle = f()", "print(x)"]) == "handle"
    assert unwaited({"handles": [Handle()]}, []) == "handles"


@pytest.mark.parametrize("source", ["handle.wait()", "dist.wait(x)", "torch.cuda.synchronize()"])
def test_code_that_waits_is_believed(source: str) -> None:
    assert unwaited({"handle": Handle()}, [source]) is None


@pytest.mark.parametrize("value", [Handle, Store(), None, [1], 3, "wait", pytest])
def test_other_things_are_no_handles(value: object) -> None:
    assert unwaited({"value": value}, []) is None


def test_names_of_the_module_are_passed_over() -> None:
    assert unwaited({"__handle__": Handle()}, []) is None


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


@pytest.mark.frameworks
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


@pytest.mark.frameworks
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
