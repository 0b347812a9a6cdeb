"""What compares results in the tests of the torch frontend fails for one element that is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import real_torch
import torch
import torch_beside
from gradients import assert_gradients
from rank_numbers import check
from real_torch import assert_close
from test_torch_functional_differential import assert_outcome
from test_torch_groups_differential import assert_same
from torch_beside import Case, compare
from torch_world import assert_result, world

import shim.frontends.torch.distributed as dist
from shim.errors import ArgumentError
from shim.frontends.torch.distributed import _functional_collectives as functional


def result(shape: Any = (2,), dtype: str = "float64", element: float = 2.0, gradient: Any = 0.5) -> Any:
    return [(shape, dtype, [1.0, element])], [[0.25, gradient], None]


ARRAY = np.array([1.0, 2.0])
RIGHT: list[Callable[[], Any]] = [
    lambda: assert_close(result(), result()),
    lambda: assert_close(result(gradient=0.5 + 1e-14), result()),
    lambda: assert_outcome(result(), ARRAY, "right"),
    lambda: assert_outcome(ArgumentError, ValueError, "right"),
    lambda: assert_same("right", [1, 2], [1, 2]),
    lambda: assert_same("right", ArgumentError(""), ValueError("")),
    lambda: check("numpy", ARRAY.copy(), ARRAY),
    lambda: assert_result("numpy", ARRAY.copy(), ARRAY),
]
WRONG: list[Callable[[], Any]] = [
    lambda: assert_close(result(element=2.5), result()),
    lambda: assert_close(result(shape=(2, 1)), result()),
    lambda: assert_close(result(dtype="float32"), result()),
    lambda: assert_close(result(gradient=0.5 + 1e-9), result()),
    lambda: assert_close((result()[0], "none"), result()),
    lambda: assert_close((result()[0], RuntimeError), (result()[0], ValueError)),
    lambda: assert_outcome(result(element=2.5), ARRAY, "wrong"),
    lambda: assert_outcome(result(), ValueError, "wrong"),
    lambda: assert_outcome(TypeError, ValueError, "wrong"),
    lambda: assert_same("wrong", [1, 2], [1, 3]),
    lambda: assert_same("wrong", [1, 2], ValueError("")),
    lambda: assert_same("wrong", TypeError(""), ValueError("")),
    lambda: check("numpy", ARRAY, np.array([1.0, 2.5])),
    lambda: check("numpy", ARRAY, ARRAY.astype("float32")),
    lambda: assert_result("numpy", ARRAY, np.array([1.0, 2.5])),
]


@pytest.mark.parametrize("place", range(len(RIGHT)))
def test_what_is_right_passes(place: int) -> None:
    RIGHT[place]()


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_one_wrong_element_fails(place: int) -> None:
    with pytest.raises(AssertionError):
        WRONG[place]()


@pytest.mark.ranks(1)
def test_one_wrong_element_of_a_tensor_in_flight_fails(rank: int) -> None:
    with world():
        for expected in (ARRAY, np.array([1.0, 2.5]), np.array([1.0])):
            seen = functional.all_reduce(torch.from_numpy(ARRAY), "sum", dist.group.WORLD)
            if expected is ARRAY:
                assert_result("torch", seen, expected)
            else:
                with pytest.raises(AssertionError):
                    assert_result("torch", seen, expected)


def differs(ours: Callable[[], Any], theirs: Callable[[], Any] = lambda: [1, 2]) -> Any:
    return lambda module, rank, size: ours() if module is dist else theirs()


def refuse(kind: type[Exception]) -> Callable[[], Any]:
    def call() -> Any:
        raise kind("refused")

    return call


def warned() -> list[int]:
    warnings.warn("by one alone", UserWarning, stacklevel=1)
    return [1, 2]


@pytest.mark.ranks(1)
def test_calls_beside_torch_differ_by_one_element(rank: int) -> None:
    with world():
        compare([Case("right", differs(lambda: (1, 2)))], torch)
        compare([Case("refused", differs(refuse(ArgumentError), refuse(ValueError)))], torch)
        compare([Case("intended", differs(lambda: [1, 3]), lambda rank, size: [1, 3], "a reason")], torch)
        for case in (
            Case("element", differs(lambda: [1, 3])),
            Case("of a tensor", differs(lambda: torch.tensor([1, 3]), lambda: torch.tensor([1, 2]))),
            Case("dtype", differs(lambda: torch.tensor([1.0]), lambda: torch.tensor([1]))),
            Case("warning", differs(warned)),
            Case("refused", differs(refuse(ArgumentError))),
            Case("not refused", differs(lambda: [1, 2], refuse(ValueError))),
            Case("another class", differs(refuse(ArgumentError), refuse(TypeError))),
            Case("intended, another element", differs(lambda: [1, 4]), lambda rank, size: [1, 3], "a reason"),
            Case("intended, another class", differs(refuse(ArgumentError)), TypeError, "a reason"),
            Case("intended, and the same", differs(lambda: [1, 2]), lambda rank, size: [1, 2], "a reason"),
            Case("intended without a reason", differs(lambda: [1, 3]), lambda rank, size: [1, 3]),
        ):
            with pytest.raises(AssertionError, match=case.name if case.why == "" else None):
                compare([case], torch)


@pytest.mark.ranks(1)
def test_a_mistake_of_ours_is_no_outcome(rank: int) -> None:
    with world():
        with pytest.raises(NameError):
            torch_beside.outcome(Case("mistake", differs(refuse(NameError))), dist, 0, 1)
        ours, theirs = (real_torch.Side(module, None, None, None, None, 0, 1) for module in (dist, None))
        with pytest.raises(NameError):
            real_torch.outcome(ours, lambda side: refuse(NameError)())
        assert real_torch.outcome(ours, lambda side: refuse(ArgumentError)()) is ArgumentError
        assert real_torch.outcome(theirs, lambda side: refuse(NameError)()) is NameError


@pytest.mark.ranks(1)
@pytest.mark.parametrize("place", range(3))
def test_one_wrong_element_of_a_gradient_fails(rank: int, place: int) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            return tensor * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            wrong = gradient * 2
            wrong[wrong_at] += 1e-3
            return wrong

    array = np.arange(1.0, 4.0)
    with world():
        wrong_at: Any = slice(0)
        assert_gradients(rank, lambda tensors: [Doubled.apply(tensors[0])], [array])
        wrong_at = place
        with pytest.raises(AssertionError, match=f"element {place}"):
            assert_gradients(rank, lambda tensors: [Doubled.apply(tensors[0])], [array])
