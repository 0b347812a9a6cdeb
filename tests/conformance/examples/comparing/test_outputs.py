"""What counts as the same as a document shows, and what does not."""

from __future__ import annotations

import numpy
import pytest

from shim.conformance.examples.comparing import Output, differs, output_of


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
