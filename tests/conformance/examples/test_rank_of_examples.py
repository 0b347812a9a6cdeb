"""What a rank sees of an example, here in this process and without a framework."""

from __future__ import annotations

import gc
import sys

import pytest

from shim.conformance.examples import preparation
from shim.conformance.examples import rank as rank_module
from shim.conformance.examples.example import Example
from shim.conformance.examples.rank import Sight, StepSight, see_example
from shim.conformance.examples.reader import examples_in
from shim.conformance.examples.runner import unseen_steps

PLAIN = "plain"  # a framework of which there is nothing


@pytest.fixture(autouse=True)
def no_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(preparation.PREAMBLE, PLAIN, "")
    monkeypatch.setattr(rank_module, "_kept", [])


def example(*lines: str) -> Example:
    (found,) = examples_in("\n".join(lines), PLAIN, "function", "here")
    return found


def see(*lines: str, rank: int = 0) -> Sight:
    return see_example(example(*lines), rank)


def test_what_is_shown_is_seen() -> None:
    sight = see(">>> x = [1, 2]", ">>> print(x)", "[1, 2]", ">>> x", "[1, 2]")
    assert sight.failure is None
    assert [step.outputs for step in sight.steps] == [(), ("[1, 2]",), ("[1, 2]",)]


def test_a_difference_is_told_with_its_line() -> None:
    failure = see(">>> x = [1, 2]", ">>> print(x)", "[1, 3]").failure
    assert failure is not None
    assert failure.line == 2
    assert "shown 3, seen 2" in str(failure.difference)


def test_an_error_ends_the_example_on_its_line() -> None:
    sight = see(">>> x = 1", ">>> def f():", "...     return 1 / 0", ">>> f()", ">>> print(x)")
    assert sight.failure is not None
    assert sight.failure.line == 4
    assert 'function.py", line 3, in f' in str(sight.failure.error)
    assert "    return 1 / 0" in str(sight.failure.error)
    assert len(sight.steps) == 3


ON_ONE_RANK = (">>> import os", ">>> if here == 1:", "...     print('me')")


@pytest.mark.parametrize("shown", [("me",), ("rank 1:", "me")])
def test_code_under_a_condition_may_show_nothing(shown: tuple[str, ...]) -> None:
    here = (">>> here = 0", *ON_ONE_RANK[1:], *shown)
    assert see(*here).failure is None
    there = (">>> here = 1", *ON_ONE_RANK[1:], *shown)
    assert see(*there, rank=1).failure is None


def test_a_rank_that_is_named_must_show_it() -> None:
    failure = see(">>> here = 0", *ON_ONE_RANK[1:], "rank 0:", "me").failure
    assert failure is not None
    assert failure.difference is not None


def test_code_without_a_condition_must_show_it() -> None:
    failure = see(">>> x = 1", ">>> f = list(range(x))", "me").failure
    assert failure is not None


def test_some_rank_must_show_what_is_shown() -> None:
    silent, seen = StepSight(3, (), silent=True), StepSight(3, ("me",))
    assert unseen_steps([[silent], [seen]]) == []
    assert unseen_steps([[silent], [silent]]) == [(0, 3, "shown, and seen on no rank")]


def test_a_value_that_is_not_waited_for_is_not_believed() -> None:
    begin = (">>> class Handle:", "...     def wait(self):", "...         pass", ">>> handle = Handle()", ">>> x = 1")
    failure = see(*begin, ">>> print(x)", "1").failure
    assert failure is not None
    assert failure.difference == "shown before handle has been waited for"
    assert see(*begin, ">>> handle.wait()", ">>> print(x)", "1").failure is None


def test_names_live_as_long_as_the_process() -> None:
    see(
        ">>> class Served:",
        "...     pass",
        ">>> served = Served()",
        ">>> import weakref, gc",
        ">>> alive = weakref.ref(served)",
    )
    gc.collect()
    (names,) = rank_module._kept
    assert names["alive"]() is names["served"]


def test_nothing_is_left() -> None:
    main = sys.modules["__main__"]
    assert see(">>> import sys", ">>> sys.modules['__main__'].x = 1", ">>> print(x)", "1").failure is None
    assert sys.modules["__main__"] is main
    assert not hasattr(main, "x")
