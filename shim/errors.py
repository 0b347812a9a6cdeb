"""The exceptions this project raises.

::

    ShimError
    ├── ArgumentError            (ValueError)           wrong value or size
    │   └── RankError                                   rank outside the group, or not a member
    │       └── NotMemberError                          the calling process is not in the group
    ├── TensorError              (TypeError)            dtype, device, layout or object that cannot be carried
    ├── UnsupportedError         (NotImplementedError)  known, deliberate gap; names frontend and engine
    ├── StateError               (RuntimeError)         not initialised, destroyed group
    ├── OutOfMemoryError         (MemoryError)          no memory for a call; the group is still usable
    ├── MismatchError            (RuntimeError)         ranks disagree; the group is still usable
    ├── StoreError               (RuntimeError)         a key-value store cannot do what it was asked
    │   ├── QueueEmptyError                             nothing to pop, and the caller does not wait
    │   ├── StoreLostError       (ConnectionError)      the server of a store cannot be reached, or is gone
    │   └── StoreTimeoutError    (TimeoutError)         a key did not appear in time
    └── EngineError              (RuntimeError)         the group is now unusable
        ├── PeerLostError                               which rank, how, since when
        └── CollectiveTimeoutError (TimeoutError)       which collective, which ranks had not arrived

A frontend whose framework documents another class for the same mistake raises a class that is both.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "CollectiveTimeoutError",
    "EngineError",
    "MismatchError",
    "NotMemberError",
    "OutOfMemoryError",
    "PeerLostError",
    "QueueEmptyError",
    "RankError",
    "ShimError",
    "StateError",
    "StoreError",
    "StoreLostError",
    "StoreTimeoutError",
    "TensorError",
    "UnsupportedError",
]


class ShimError(Exception):
    """Every error of this project."""


class ArgumentError(ShimError, ValueError):
    """An argument has a value or a size that the function cannot take."""


class RankError(ArgumentError):
    """A rank is outside the group, or the caller is not a member of it."""


class NotMemberError(RankError):
    """The calling process is not a member of the group."""


class TensorError(ShimError, TypeError):
    """An object is not a tensor, or a tensor's dtype, device or layout cannot be carried."""


class UnsupportedError(ShimError, NotImplementedError):
    """A known and deliberate gap."""


class StateError(ShimError, RuntimeError):
    """The call needs an initialised world or a live group, and there is none."""


class OutOfMemoryError(ShimError, MemoryError):
    """This process has not the memory that a call needs.

    Raised before the call began. The other ranks of a collective get a MismatchError, and the group stays usable; a rank that waits for a
    message of this one goes on waiting.
    """


class MismatchError(ShimError, RuntimeError):
    """The ranks of a group made calls that do not fit together.

    Raised on every rank before a byte of output is written; the group stays usable.
    """


class StoreError(ShimError, RuntimeError):
    """A key-value store cannot do what it was asked."""


class QueueEmptyError(StoreError):
    """A queue of a store is empty, and the caller did not want to wait."""


class StoreLostError(StoreError, ConnectionError):
    """The server of a store cannot be reached, or has gone away."""


class StoreTimeoutError(StoreError, TimeoutError):
    """What a store was asked to wait for did not come in time; the store stays usable."""


class EngineError(ShimError, RuntimeError):
    """The engine failed; the group can no longer be used and outputs in flight are undefined."""


class PeerLostError(EngineError):
    """A rank of the group died or left while others still needed it.

    ``ranks`` holds the group ranks that were lost.
    """

    ranks: tuple[int, ...] = ()


class CollectiveTimeoutError(EngineError, TimeoutError):
    """A collective did not end within the group's timeout.

    ``ranks`` holds the group ranks that had not arrived.
    """

    ranks: tuple[int, ...] = ()
