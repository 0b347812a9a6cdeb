"""Every kind of tensor as every other one: the same dtype and shape over the same memory, or a refusal that says why."""

from __future__ import annotations

import importlib
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from shim.conformance.examples.conversion import (
    LACKING,
    InapplicableError,
    array_over,
    as_kind,
    is_a,
    shares_memory,
)
from shim.conformance.kinds import KINDS, kind_named
from shim.core.tensors import dtype_name
from shim.launch.original import Original
from shim.launch.pool import RankPool

FRAMEWORKS = ("mindspore", "torch", "paddle")  # MindSpore cannot follow Paddle
DTYPES = ("bool", "int8", "uint8", "uint16", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
SHAPES = ((2, 3), (), (0, 2), (3, 1))
PAIRS = [(own, other) for own, other in itertools.product(KINDS, KINDS) if own != other]


class Seen(NamedTuple):
    """What became of a tensor: what it is like, whether it shares memory, and the elements; or the refusal."""

    like: tuple[str, tuple[int, ...], bool]
    shared: bool
    elements: list[Any]
    refusal: str = ""


def made(own: str, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = kind_named(own)
    size = int(np.prod(shape))
    whole = kind.make((np.arange(size) % 2).reshape(shape).astype("float32" if dtype == "bfloat16" else dtype))
    if dtype != "bfloat16":
        return whole
    return whole.to(kind.module.bfloat16) if own == "torch" else whole.astype(kind.module.bfloat16)


def seen(tensor: Any, other: str) -> Seen:
    try:
        found = as_kind(tensor, other)
    except InapplicableError as error:
        return Seen(("", (), False), False, [], str(error))
    like = (dtype_name(found), tuple(found.shape), is_a(found, other))
    return Seen(like, shares_memory(tensor, found), array_over(found).tolist())


def all_seen() -> dict[Any, Seen]:
    cases = itertools.product(PAIRS, DTYPES, SHAPES)
    return {
        (own, other, dtype, shape): seen(made(own, dtype, shape), other)
        for (own, other), dtype, shape in cases
        if not dtype.startswith(LACKING[own])
    }


def strided_seen() -> dict[Any, Seen]:
    found = {}
    for own, other in PAIRS:
        whole = made(own, "float32", (2, 3))
        found[own, other] = seen(whole[:, 1], other)
    return found


def gradients_seen() -> list[str]:
    torch, paddle = map(importlib.import_module, ("torch", "paddle"))
    mindspore = importlib.import_module("mindspore")
    refusals = []

    def loss(tensor: Any) -> Any:
        refusals.append(seen(tensor, "numpy").refusal)
        return (tensor * 2).sum()

    loss(torch.ones(2, requires_grad=True))
    loss(paddle.ones([2]).detach())
    tensor = paddle.ones([2])
    tensor.stop_gradient = False
    loss(tensor)
    mindspore.grad(loss)(mindspore.Tensor([1.0, 2.0]))
    loss(mindspore.Tensor([1.0, 2.0]))
    return refusals


@pytest.fixture(scope="module")
def pool():
    with Original(FRAMEWORKS) as original, RankPool(1, original=original) as pool:
        yield pool


def answer(pool: RankPool, target: Any) -> Any:
    (outcome,) = pool.run(target)
    assert outcome.error is None, outcome.error
    return outcome.value


def test_every_kind_becomes_every_kind(pool: RankPool) -> None:
    for (own, other, dtype, shape), found in answer(pool, all_seen).items():
        if dtype.startswith(LACKING[other]):
            assert found.refusal == f"{other} has no {dtype}", (own, other, dtype, shape)
            continue
        assert found.like == (dtype, shape, True), (own, other, dtype, shape)
        assert found.shared, (own, other, dtype, shape)


def test_every_kind_becomes_every_kind_in_parts_which_mindspore_copies(pool: RankPool) -> None:
    for (own, other), found in answer(pool, strided_seen).items():
        assert found.elements == [1, 0], (own, other)
        assert found.shared == (other != "mindspore"), (own, other)


def test_gradients_of_every_kind_are_refused(pool: RankPool) -> None:
    taken, none = "a gradient is taken through a tensor that goes to the frontend, and ends at another kind's", ""
    assert answer(pool, gradients_seen) == [taken, none, taken, taken, none]


def test_what_is_no_tensor_of_a_numpy_kind_is_told() -> None:
    assert is_a(np.ones(1), "numpy")
    assert not is_a([1], "numpy")
    assert not is_a(np.ones(1), "no such framework")
