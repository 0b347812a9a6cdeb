"""The classes that are both this project's error and the one torch raises for the same mistake."""

from __future__ import annotations

from shim.core.callers import Caller
from shim.errors import ArgumentError, StateError, TensorError

__all__ = [
    "ArgumentAssertionError",
    "ArgumentTypeError",
    "DefaultGroupMissingError",
    "SlotsMissingError",
    "TorchStateError",
    "TorchTensorError",
    "torch_function",
]


class TorchStateError(StateError, ValueError):
    """The default process group is not initialised, is initialised already, or a group was destroyed."""


class DefaultGroupMissingError(StateError, AssertionError):
    """There is no process group to destroy."""


class TorchTensorError(TensorError, ValueError):
    """A tensor cannot be carried; torch raises TypeError for its type and ValueError for its dtype."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a type that the function does not take."""


class ArgumentAssertionError(ArgumentError, AssertionError):
    """Arguments of the initialisation that exclude each other, or a backend that torch does not know."""


class SlotsMissingError(ArgumentError, IndexError):
    """A list has fewer slots than the group has ranks."""


def torch_function(name: str, **parameters: str) -> Caller:
    """Return the Caller of ``torch.distributed.name``, whose arguments play the roles in *parameters*."""
    return Caller(
        f"torch.distributed.{name}",
        errors={
            DefaultGroupMissingError: DefaultGroupMissingError,
            StateError: TorchStateError,
            TensorError: TorchTensorError,
        },
        outsider="warn",
        **parameters,
    )
