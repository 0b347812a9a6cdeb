"""The exceptions this project raises.

::

    ShimError
    ├── ArgumentError            (ValueError)           wrong value or size
    │   └── RankError                                   rank outside the group, or not a member
    │       └── NotMemberError                          the calling process is not in the group
    ├── TensorError              (TypeError)            dtype, device, layout or object that the engine cannot use
    │   └── DeviceTensorError                           a tensor on a device that no engine here serves
    ├── UnsupportedError         (NotImplementedError)  something shim deliberately lacks; names frontend and engine
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

If a framework documents another class for the same mistake, its frontend raises a class that is both, and a traceback shows the name above.
If the framework has its own class, such as ``torch.distributed.DistBackendError``, and is loaded, the error is an instance of that, too.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, ClassVar

__all__ = [
    "ArgumentError",
    "CollectiveTimeoutError",
    "DeviceTensorError",
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
    """The base class of all errors of this project.

    A traceback shows a frontend's class under the name of its base class in this module or, with *public*, under its name in that package,
    which mirrors the framework's.
    """

    _home: ClassVar[tuple[str, str]] = (__name__, "ShimError")  # the module and name at which the class itself is found
    _framework: ClassVar[tuple[str, str] | None] = None  # those of the framework's own class

    def __init_subclass__(cls, public: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "_home" in vars(cls):  # of both, made below
            return
        cls._home = (cls.__module__, cls.__qualname__)
        if public is not None:
            cls.__module__ = public
            cls._framework = (public.removeprefix(_FRONTENDS), cls.__name__)
        elif cls.__module__.startswith(_FRONTENDS):
            shown = next(base for base in cls.__mro__ if base.__module__ == __name__)
            cls.__module__, cls.__name__, cls.__qualname__ = __name__, shown.__name__, shown.__qualname__

    def __new__(cls, *arguments: Any, **_: Any) -> ShimError:
        """Make an error that is also of the framework's own class, where that is loaded. Keywords are for an ``__init__`` that takes them."""
        kind = _with_frameworks_own(cls)
        builtin: Any = kind  # the one whose fields the error has, as OSError's: Python refuses another's __new__
        while issubclass(builtin, ShimError):
            builtin = builtin.__base__
        made: ShimError = builtin.__new__(kind, *arguments)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Go through pickle by the place of the class itself; where it arrives, the framework may be loaded or not."""
        reduced: Any = super().__reduce__()
        kind, arguments, *state = reduced
        plain = _of_both.get(kind, kind)
        if plain._home == (plain.__module__, plain.__qualname__):
            return plain, arguments, *state
        return _made_again, (plain._home, *arguments), *state


_FRONTENDS = "shim.frontends."
# From the classes that are a framework's too to ours that they were made of.
_of_both: dict[type[ShimError], type[ShimError]] = {}


def _with_frameworks_own(kind: type[ShimError]) -> type[ShimError]:
    if kind._framework is None or kind in _of_both:
        return kind
    module, name = kind._framework
    own = getattr(sys.modules.get(module), name, None)
    if own is None:
        return kind
    for both, plain in _of_both.items():
        if plain is kind:
            return both
    names = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__", "_home")}
    both = type(kind.__name__, (kind, own), names)
    _of_both[both] = kind
    return both


def _made_again(home: tuple[str, str], *arguments: Any) -> ShimError:
    found: Any = importlib.import_module(home[0])
    for name in home[1].split("."):
        found = getattr(found, name)
    made: ShimError = found(*arguments)
    return made


class ArgumentError(ShimError, ValueError):
    """An argument has a value or a size that the function cannot take."""


class RankError(ArgumentError):
    """A rank is outside the group, or the caller is not a member of it."""


class NotMemberError(RankError):
    """The calling process is not a member of the group."""


class TensorError(ShimError, TypeError):
    """An object is not a tensor, cannot be pickled, or a tensor's dtype, device or layout cannot be carried.

    ``raised`` is what an object's own class raised when it was pickled. The error that a caller gets is of that class, too.
    """

    raised: Exception | None = None


class DeviceTensorError(TensorError):
    """A tensor is on a device, and no engine that serves the group can reach it there.

    ``device`` is the kind of device, such as "cuda", and its number.
    """

    device: tuple[str, int] = ("", -1)


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
