"""The classes that are both this project's error and the one torch raises for the same mistake."""

from __future__ import annotations

from pickle import UnpicklingError
from typing import Literal

from shim import errors
from shim.core.callers import Caller
from shim.errors import (
    ArgumentError,
    CollectiveTimeoutError,
    EngineError,
    PeerLostError,
    ShimError,
    StateError,
    StoreError,
    StoreLostError,
    StoreTimeoutError,
    TensorError,
)

_PUBLIC = "shim.frontends.torch.distributed"


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


class UnsafeObjectError(TensorError, UnpicklingError):
    """An object that came is not of the types that ``weights_only`` allows."""


class DistError(ShimError, RuntimeError, public=_PUBLIC):
    """What goes wrong beyond this process: in a backend, on the way to a store, or in one.

    See: https://docs.pytorch.org/docs/2.15/distributed.html#torch.distributed.DistError
    """


class DistBackendError(DistError, EngineError, public=_PUBLIC):
    """The engine failed, and the group can no longer be used."""


class DistNetworkError(DistError, StoreLostError, public=_PUBLIC):
    """A store's server cannot be reached, or is gone."""


class DistStoreError(DistError, StoreError, public=_PUBLIC):
    """A store cannot do what it was asked, or not in time."""


class QueueEmptyError(DistStoreError, errors.QueueEmptyError, public=_PUBLIC):
    """A store's queue is empty, and the caller did not want to wait."""


class _StoreTimedOutError(DistStoreError, StoreTimeoutError):
    """What a store was asked to wait for did not come in time."""


class _PeerLostError(DistBackendError, PeerLostError):
    """A rank died, or left while others still needed it."""


class _CollectiveTimedOutError(DistBackendError, CollectiveTimeoutError):
    """A collective did not end in time."""


_TORCH_CLASSES: dict[type[ShimError], type[ShimError]] = {
    DefaultGroupMissingError: DefaultGroupMissingError,
    StateError: TorchStateError,
    TensorError: TorchTensorError,
    EngineError: DistBackendError,
    PeerLostError: _PeerLostError,
    CollectiveTimeoutError: _CollectiveTimedOutError,
    StoreError: DistStoreError,
    StoreLostError: DistNetworkError,
    StoreTimeoutError: _StoreTimedOutError,
    errors.QueueEmptyError: QueueEmptyError,
}


def torch_function(name: str, outsider: Literal["raise", "warn"] = "warn", /, **parameters: str) -> Caller:
    """Return the Caller of ``torch.distributed.name``, whose arguments play the roles in *parameters*.

    *outsider* is what happens to a process outside the group, as ``Caller`` describes.
    """
    return Caller(f"torch.distributed.{name}", errors=_TORCH_CLASSES, outsider=outsider, **parameters)
