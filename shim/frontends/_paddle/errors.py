"""The classes that are both this project's error and the one paddle raises for the same mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from shim.core.callers import Caller
from shim.errors import ArgumentError, NotMemberError, RankError, ShimError, StateError, TensorError


class PaddleTensorError(TensorError, ValueError):
    """A tensor cannot be carried; paddle raises ValueError for it."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a type that the function does not take."""


class ArgumentRuntimeError(ArgumentError, RuntimeError):
    """Outputs or inputs are missing, empty, or of two kinds."""


class ArgumentAssertionError(ArgumentError, AssertionError):
    """A list to gather into is missing or of another length than the group."""


class GroupMissingError(StateError, AssertionError):
    """The global group is not initialised, or the group to destroy is none of paddle's."""


class RankIndexError(RankError, IndexError):
    """A group rank is not one of the group's; paddle looks it up in a list."""


class OutsiderError(NotMemberError, RuntimeError):
    """The calling process is not in the group, where paddle requires it."""


def paddle_function(name: str, errors: Mapping[type[ShimError], type[ShimError]] | None = None, **roles: str) -> Caller:
    """Return the Caller of ``paddle.distributed.name``, whose arguments play *roles*.

    Outside the group it warns and does nothing, unless *errors* says what to raise for NotMemberError.
    """
    classes: dict[type[ShimError], type[ShimError]] = {TensorError: PaddleTensorError}
    classes.update(errors or {})
    outsider: Literal["raise", "warn"] = "raise" if NotMemberError in classes else "warn"
    return Caller(f"paddle.distributed.{name}", errors=classes, outsider=outsider, **roles)


def stream_function(name: str, **roles: Any) -> Caller:
    """Return the Caller of ``paddle.distributed.stream.name``; see ``paddle_function``."""
    return paddle_function(f"stream.{name}", **roles)
