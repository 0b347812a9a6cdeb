"""Objects in tensors of bytes, as torch's internals put them there."""

from __future__ import annotations

from typing import Any

from shim.core import pickles
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.objects import check_allowed, unpicklable
from shim.errors import ShimError

__all__ = ["pickled", "unpickled"]


def pickled(caller: Caller, members: ProcessGroup, item: Any) -> bytearray:
    """Return the pickle of *item*."""
    try:
        return pickles.packed(members, item)
    except Exception as error:  # a class raises what it likes when it cannot be pickled
        raise caller.explain(unpicklable(error), members) from None


def unpickled(caller: Caller, members: ProcessGroup, packed: bytes) -> Any:
    """Return what *packed* is the pickle of, where that is allowed."""
    try:
        check_allowed()
    except ShimError as error:
        raise caller.explain(error, members) from None
    return pickles.unpacked(members, packed)
