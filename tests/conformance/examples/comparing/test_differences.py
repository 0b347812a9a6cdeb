"""In how many places what is shown differs from what is seen."""

from __future__ import annotations

import pytest

from shim.conformance.examples.comparing import all_differences

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
