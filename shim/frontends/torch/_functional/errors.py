"""Who calls a functional collective, and the errors that are both ours and what torch raises there."""

from __future__ import annotations

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch._errors import torch_function


class ReduceOpError(ArgumentError, RuntimeError):
    """A reduce op that torch has no word for."""


class GroupNameError(ArgumentError, RuntimeError):
    """No process group of this name."""


class ListLengthError(ArgumentError, AssertionError):
    """Lists that belong together have different lengths."""


class DimensionError(ArgumentError, IndexError):
    """A tensor has no such dimension."""


class NothingToWaitForError(ArgumentError, RuntimeError):
    """An empty list of tensors."""


def functional_caller(name: str, **parameters: str) -> Caller:
    """Return the Caller of ``torch.distributed.name``. Outside the group there is no result, so that is an error."""
    return torch_function(name, "raise", **parameters)
