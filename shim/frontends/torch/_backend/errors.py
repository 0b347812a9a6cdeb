"""The frontend's errors that are torch's own as well: torch's code, and libraries on it, catch these."""

from __future__ import annotations

from typing import Any

import torch.distributed

from shim.errors import (
    CollectiveTimeoutError,
    EngineError,
    PeerLostError,
    StoreError,
    StoreLostError,
    StoreTimeoutError,
)
from shim.frontends.torch import _errors

__all__ = ["raise_torchs_own"]

_ours: Any = _errors.TORCH_CLASSES.copy()  # as they are without torch; what is derived from them is called like them
_torch: Any = torch.distributed  # its classes have names only at run time


class _BackendError(_ours[EngineError], _torch.DistBackendError):  # type: ignore[misc]
    """The engine failed, and the group can no longer be used."""


class _PeerLostError(_ours[PeerLostError], _torch.DistBackendError):  # type: ignore[misc]
    """A rank died, or left while others still needed it."""


class _CollectiveTimedOutError(_ours[CollectiveTimeoutError], _torch.DistBackendError):  # type: ignore[misc]
    """A collective did not end in time."""


class _NetworkError(_ours[StoreLostError], _torch.DistNetworkError):  # type: ignore[misc]
    """A store's server cannot be reached, or is gone."""


class _StoreError(_ours[StoreError], _torch.DistStoreError):  # type: ignore[misc]
    """A store cannot do what it was asked, or not in time."""


class _StoreTimedOutError(_ours[StoreTimeoutError], _torch.DistStoreError):  # type: ignore[misc]
    """What a store was asked to wait for did not come in time."""


def raise_torchs_own() -> None:
    """From now on, have the frontend raise these."""
    _errors.TORCH_CLASSES.update(
        {
            EngineError: _BackendError,
            PeerLostError: _PeerLostError,
            CollectiveTimeoutError: _CollectiveTimedOutError,
            StoreError: _StoreError,
            StoreLostError: _NetworkError,
            StoreTimeoutError: _StoreTimedOutError,
        }
    )
