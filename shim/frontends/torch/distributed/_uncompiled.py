"""Keeping torch's compiler out: a collective happens in the engine, where the compiler cannot follow."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["uncompiled"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_REASON = "the collectives of shim's torch frontend run outside of compiled graphs"


def uncompiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return *function* as one at which ``torch.compile`` ends its graph, and after which it begins another.

    The compiler is not loaded for it: where it is not there, nothing is compiled.
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if "torch._dynamo" in sys.modules:
            return cast(_R, _outside(function)(*args, **kwargs))
        return function(*args, **kwargs)

    return run


@functools.cache
def _outside(function: Callable[..., Any]) -> Callable[..., Any]:
    disabled: Callable[..., Any] = sys.modules["torch._dynamo"].disable(function, reason=_REASON)
    return disabled
