"""Errors that are both ours and of the class that MindSpore documents for the same mistake."""

from __future__ import annotations

from collections.abc import Mapping

from shim.errors import ArgumentError, RankError, ShimError, StateError


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument that is no tensor has the wrong type, or is not among the strings that the function takes."""


class BackendNameError(ArgumentError, RuntimeError):
    """``mindspore.communication.init`` knows no backend of that name."""


class ForeignRankError(RankError, RuntimeError):
    """A rank of the world that is not in the group: a ValueError by MindSpore's pages, a RuntimeError by its code."""


class NotANumberError(ArgumentError, RuntimeError):
    """A store has something else than a number where one is to be added to."""


class WorldSizeError(StateError, ArgumentError):
    """The world that this process is in has another size, or gave it another rank."""


# For functions of which MindSpore documents a TypeError for tensors that do not fit: a Caller's ``errors``.
TYPE_ERRORS: Mapping[type[ShimError], type[ShimError]] = {
    ForeignRankError: ForeignRankError,
    RankError: RankError,
    ArgumentError: ArgumentTypeError,
}
