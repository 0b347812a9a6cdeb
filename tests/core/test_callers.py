"""Warnings point at the user's line, and errors are of the classes that the user expects."""

from __future__ import annotations

import pickle
import sys
import types
import warnings
from typing import Any

import pytest

from shim.core.callers import Caller, warn_user
from shim.core.objects import unpicklable
from shim.errors import TensorError
from shim.frontends.torch._errors import TorchTensorError, torch_function


def module_called(name: str) -> types.ModuleType:
    """A module of that name whose function ``call`` calls what it is given."""
    module = types.ModuleType(name)
    exec("def call(function, *arguments):\n    return function(*arguments)\n", module.__dict__)
    return module


def test_a_warning_points_at_the_first_line_outside_this_project() -> None:
    inner, outer = module_called("shim.core.anything"), module_called("shim.frontends.torch")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outer.call(inner.call, warn_user, "look here")
        line = sys._getframe().f_lineno - 1
        warn_user("and here")
        module_called("shimmer").call(warn_user, "not ours")
    assert [str(one.message) for one in caught] == ["look here", "and here", "not ours"]
    assert all(one.category is UserWarning for one in caught)
    assert [(one.filename, one.lineno) for one in caught[:2]] == [(__file__, line), (__file__, line + 2)]
    assert caught[2].filename == "<string>"


class OfTwo(Exception):
    """An error that cannot be made of a text alone, and has its own text."""

    def __new__(cls, code: int, reason: str) -> OfTwo:
        return super().__new__(cls, reason)

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code

    def __str__(self) -> str:
        return f"code {self.code}"


class WithoutSubclasses(Exception):
    def __init_subclass__(cls) -> None:
        raise RuntimeError("there are none")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (AttributeError("a"), "AttributeError: a"),
        (pickle.PicklingError("p"), "PicklingError: p"),
        (TypeError("t"), "TypeError: t"),
        (ValueError("v"), "ValueError: v"),
        (KeyError("k"), "KeyError: 'k'"),
        (OSError(2, "o"), "FileNotFoundError: [Errno 2] o"),
        (StopIteration(3), "StopIteration: 3"),
        (RecursionError("r"), "RecursionError: r"),
        (OfTwo(7, "o"), "OfTwo: code 7"),
    ],
)
@pytest.mark.parametrize(
    ("caller", "kind"),
    [(Caller("f", input="obj"), TensorError), (torch_function("f", input="obj"), TorchTensorError)],
)
def test_an_unpicklable_object_is_told_in_our_class_and_in_its_own(
    caller: Caller, kind: type[Exception], raised: Exception, told: str
) -> None:
    error: Any = caller.explain(unpicklable(raised))
    assert isinstance(error, kind)
    assert isinstance(error, type(raised))
    assert str(error) == f"{caller.function}: obj must be picklable, got {told}"
    assert type(error).__name__ == kind.__name__
    assert getattr(error, "code", None) == getattr(raised, "code", None)
    elsewhere = pickle.loads(pickle.dumps(error))  # as a spawned rank hands it to its parent
    assert (type(elsewhere), str(elsewhere)) == (kind, str(error))


def test_a_class_that_cannot_be_ours_too_is_told_in_words() -> None:
    error = Caller("f", input="obj").explain(unpicklable(WithoutSubclasses("w")))
    assert type(error) is TensorError
    assert str(error) == "f: obj must be picklable, got WithoutSubclasses: w"
