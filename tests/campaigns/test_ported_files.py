"""How functions of public files are taken out of them, and compared before and after a port."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from campaigns.ported_files.functions import _segments, is_same

TEXT = """\
import os
try:
    import numpy as np
except ImportError:
    np = None
_SIZE: int = 3
unused = os.sep

def decorated(function):
    return function

@decorated
def f(x):
    return np.zeros(_SIZE) + x

def g(x):
    return f(x)
"""


def test_a_function_is_taken_with_what_it_needs() -> None:
    text = "\n".join(_segments(TEXT, "g"))
    names: dict[str, object] = {}
    exec(compile(ast.parse(text), "<taken>", "exec"), names)
    assert "unused" not in text
    assert "@decorated\ndef f" in text
    assert names["g"](1).tolist() == [1, 1, 1]  # type: ignore[operator]


ONE = np.arange(3.0)


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        (ONE, ONE + 1e-7, True),
        (ONE, ONE + 1e-3, False),
        (ONE, ONE.astype(np.float32), False),
        (np.array([1.0]), np.array(1.0), False),
        ("an error", ONE, False),
        ([ONE, {"a": 1}], [ONE, {"a": 1}], True),
        ([ONE], [ONE, ONE], False),
        ({"a": ONE}, {"b": ONE}, False),
        ({"a": ONE}, {"a": ONE, "b": ONE}, False),
    ],
)
def test_what_counts_as_the_same(found: object, expected: object, same: bool) -> None:
    assert is_same(found, expected) == same
