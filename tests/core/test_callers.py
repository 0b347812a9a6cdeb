"""Warnings point at the user's line, from wherever in this project they are given."""

from __future__ import annotations

import sys
import types
import warnings

from shim.core.callers import warn_user


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
