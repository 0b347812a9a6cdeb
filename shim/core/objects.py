"""Collectives of Python objects: pickled, their sizes gathered first, then their bytes."""

from __future__ import annotations

import pickle
from array import array
from itertools import accumulate
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.work import ABSENT
from shim.errors import TensorError

__all__ = ["all_gather"]


def all_gather(caller: Caller, group: ProcessGroup, item: Any) -> list[Any] | None:
    """Return every rank's *item*, in the order of group ranks; None outside the group where that is no error.

    Every rank of *group* calls it. *item* is pickled: ranks must trust each other, and be able to import what it is
    made of. Raises TensorError for what cannot be pickled; unpickling raises what the object's own class raises.
    """
    packed = _pack(caller, group, item)
    sizes = array("q", bytes(8 * group.size))  # bytes of each rank's pickle
    exchange = calls.all_gather(caller, group, sizes, array("q", [len(packed)]))
    if exchange is ABSENT:
        return None
    exchange.wait()
    everything = bytearray(sum(sizes))
    calls.all_gather(caller, group, everything, packed, sizes.tolist()).wait()
    ends = list(accumulate(sizes))
    view = memoryview(everything)
    return [pickle.loads(view[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _pack(caller: Caller, group: ProcessGroup, item: Any) -> bytearray:
    if not group.is_alive:
        return bytearray()  # the call that follows says why
    try:
        return bytearray(pickle.dumps(item))
    except Exception as error:  # a class raises what it likes when it cannot be pickled
        calls.refused(caller, group, TensorError(f"{{input}} must be picklable, got {item!r:.80}: {error}"))
        return bytearray()
