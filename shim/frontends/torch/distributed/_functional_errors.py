"""Who calls a functional collective, and the errors that are both ours and what torch raises there."""

from __future__ import annotations

import sys
import warnings

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch.distributed._errors import torch_function

__all__ = [
    "DimensionError",
    "GroupNameError",
    "ListLengthError",
    "ReduceOpError",
    "deprecated",
    "functional_caller",
    "warn_user",
]


class ReduceOpError(ArgumentError, RuntimeError):
    """A reduce op that torch has no word for."""


class GroupNameError(ArgumentError, RuntimeError):
    """No process group of this name."""


class ListLengthError(ArgumentError, AssertionError):
    """Lists that belong together have different lengths."""


class DimensionError(ArgumentError, IndexError):
    """A tensor has no such dimension."""


def functional_caller(name: str, **parameters: str) -> Caller:
    """Return the Caller of ``torch.distributed.name``. Outside the group there is no result, so that is an error."""
    return torch_function(name, "raise", **parameters)


def deprecated(caller: Caller, new: str) -> Caller:
    """Return *caller*, warning the frontend's user that torch wants ``_functional_collectives.new`` called instead."""
    warnings.warn(
        f"torch 2.13 deprecates {caller.function}; call torch.distributed._functional_collectives.{new}",
        FutureWarning,
        stacklevel=3,
    )
    return caller


def warn_user(message: str) -> None:
    """Warn that torch deprecates what the user's own code does, which is some way up from here."""
    level = 2
    while sys._getframe(level - 1).f_globals["__name__"].startswith(("shim.", "torch.")):
        level += 1
    warnings.warn(message, FutureWarning, stacklevel=level)
