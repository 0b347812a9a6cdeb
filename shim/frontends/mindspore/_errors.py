"""Errors that are both ours and of the class that MindSpore documents for the same mistake."""

from __future__ import annotations

from shim.errors import ArgumentError, StateError

__all__ = ["ArgumentTypeError", "BackendNameError", "WorldSizeError"]


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument that is no tensor has the wrong type, or is not among the strings that the function takes."""


class BackendNameError(ArgumentError, RuntimeError):
    """``mindspore.communication.init`` knows no backend of that name."""


class WorldSizeError(StateError, ArgumentError):
    """The world that this process is in has another size, or gave it another rank."""
