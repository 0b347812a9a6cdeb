"""Collectives of Python objects: pickled, their sizes sent first, then their bytes, after a barrier that says so.

Unpickling runs code that the pickle names, so whoever can write to a group can run code in its processes. That is no
more than they can do already: a group's memory is handed to processes of the same user alone. Between hosts pickles are sealed.

*item* and *items* may be anything that pickle takes; what their classes need must be importable where they arrive.
All ranks of a call need the same *form*, which says how the objects are made bytes and read again.
Every function raises TensorError, which is of the class that pickle raised too, for what cannot be pickled, UnsupportedError where ``SHIM_ALLOW_PICKLE=0`` forbids it, and what the objects'
own classes raise when unpickled.
Outside the group, where that is no error, nothing is sent and None is returned.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from shim.core import calls, pickles
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.job.variables import Variables
from shim.core.pickles import PICKLES, Format
from shim.core.work import ABSENT
from shim.errors import ArgumentError, MismatchError, OutOfMemoryError, ShimError, TensorError, UnsupportedError

_REFUSED = -1  # in place of the number of objects, which do not follow


class Received(NamedTuple):
    """What ``receive`` returns: the objects, and the group rank that sent them."""

    items: list[Any]
    source: int


def check_allowed() -> None:
    """Raise UnsupportedError where ``SHIM_ALLOW_PICKLE`` is 0: no object of another rank is unpickled, and none is sent."""
    said = Variables(os.environ).get("SHIM_ALLOW_PICKLE") or "1"
    if said not in ("0", "1"):
        raise ArgumentError(f"SHIM_ALLOW_PICKLE must be 0 or 1, got {said!r}")
    if said == "0":
        raise UnsupportedError(
            "Python objects are not exchanged, because SHIM_ALLOW_PICKLE is 0\nSend tensors instead."
        )


def all_gather(caller: Caller, group: ProcessGroup, item: Any, form: Format = PICKLES) -> list[Any] | None:
    """Return every rank's *item*, in the order of group ranks."""
    _begin(caller, group)
    packed = _pack(caller, group, item, form)
    if calls.barrier(caller, group, True, f"all_gather of objects{form.said}") is ABSENT:
        return None
    sizes = array("q", bytes(8 * group.size))  # bytes of each rank's pickle
    calls.all_gather(caller, group, sizes, array("q", [len(packed)]), now=True)
    everything = _room(caller, group, sum(sizes))
    calls.all_gather(caller, group, everything, packed, sizes.tolist()).wait()
    return _unpack(group, everything, sizes, form)


def gather(caller: Caller, group: ProcessGroup, item: Any, root: int, form: Format = PICKLES) -> list[Any] | None:
    """Return every rank's *item* on *root*, in the order of group ranks, and None elsewhere."""
    _begin(caller, group)
    packed = _pack(caller, group, item, form)
    if calls.barrier(caller, group, True, f"gather of objects{form.said}") is ABSENT:
        return None
    sizes = array("q", bytes(8 * group.size))
    calls.all_gather(caller, group, sizes, array("q", [len(packed)]), now=True)
    everything = _room(caller, group, sum(sizes) if group.rank == root else 0)
    calls.gather(caller, group, everything, packed, root, sizes.tolist()).wait()
    return _unpack(group, everything, sizes, form) if group.rank == root else None


def broadcast(
    caller: Caller, group: ProcessGroup, items: Sequence[Any], root: int, form: Format = PICKLES
) -> list[Any] | None:
    """Return copies of *root*'s *items* on every other rank, which gives as many of its own, and *items* on *root*."""
    _begin(caller, group)
    gives = group.rank == root or group.is_rehearsed  # where the root's are not known, these stand for them
    pack = _pack if group.rank == root else _pack_if_possible
    packed = [pack(caller, group, item, form) for item in items] if gives else []
    if calls.barrier(caller, group, True, f"broadcast of {_number(len(items), form)}") is ABSENT:
        return None
    sizes = array("q", map(len, packed) if gives else bytes(8 * len(items)))
    calls.broadcast(caller, group, sizes, root, now=True)
    is_own = sizes.tolist() == [len(one) for one in packed]
    everything = _joined(caller, group, packed) if gives and is_own else _room(caller, group, sum(sizes))
    calls.broadcast(caller, group, everything, root).wait()
    return list(items) if group.rank == root else _unpack(group, everything, sizes, form)


def scatter(caller: Caller, group: ProcessGroup, items: Sequence[Any] | None, root: int, form: Format = PICKLES) -> Any:
    """Return this rank's place in *root*'s *items*, one for each rank; elsewhere *items* is not looked at."""
    _begin(caller, group)
    packed = [_pack(caller, group, item, form) for item in items or ()] if group.rank == root else []
    if calls.barrier(caller, group, True, f"scatter of objects{form.said}") is ABSENT:
        return None
    sizes = array("q", map(len, packed))
    size = array("q", [0])
    calls.scatter(caller, group, size, sizes, root, now=True)
    mine = _room(caller, group, size[0])
    calls.scatter(caller, group, mine, _joined(caller, group, packed), root, sizes.tolist() or None).wait()
    return _unpack(group, mine, [len(mine)], form)[0]


def send(
    caller: Caller, group: ProcessGroup, items: Sequence[Any], peer: int, tag: int = 0, form: Format = PICKLES
) -> None:
    """Send *items* to *peer*, which receives as many under the same *tag*; or tell it that they cannot be pickled."""
    packed, content = [], bytearray()
    if group.is_alive:
        try:
            check_allowed()
            packed = [pickles.packed(group, item, form) for item in items]
            content = bytearray().join([array("q", map(len, packed)), *packed])  # the sizes in bytes, then the pickles
        except Exception as error:  # a class raises what it likes when it cannot be pickled
            _tell_refusal(group, peer, tag)
            raise caller.explain(error if isinstance(error, ShimError) else unpicklable(error), group) from None
    first = calls.send(caller, group, array("q", [len(packed), len(content), form.number]), peer, tag)
    if first is not ABSENT:
        first.wait()
        calls.send(caller, group, content, peer, tag).wait()
        _refused.get(group, set()).discard(peer)


_refused: WeakKeyDictionary[ProcessGroup, set[int]] = WeakKeyDictionary()  # ranks told so, and sent nothing since


def _tell_refusal(group: ProcessGroup, peer: int, tag: int) -> None:
    """Tell *peer* that it gets no objects, once until it is sent some: what nobody receives would end the group in time."""
    told = _refused.setdefault(group, set())
    if peer not in told:
        with suppress(ShimError):  # a peer that is none, or is gone, cannot be told
            word = group.engine.send(array("q", [_REFUSED, 0, 0]), peer, tag)
            if word is not None:
                word.start()
            told.add(peer)


def receive(
    caller: Caller, group: ProcessGroup, count: int, peer: int | None, tag: int = 0, form: Format = PICKLES
) -> Received | None:
    """Return the *count* objects that *peer*, or any rank when it is None, sent under *tag*.

    Raises MismatchError where the peer's cannot be pickled, or are another number of objects.
    """
    if group.is_alive:
        try:
            check_allowed()
        except ShimError as error:
            raise caller.explain(error, group) from None
    header = array("q", [0, 0, 0])
    first = calls.receive(caller, group, header, peer, tag)
    if first is ABSENT:
        return None
    first.wait()
    source = first.source_rank()
    is_unknown = group.is_rehearsed and not any(header)
    if is_unknown:
        header[:] = array("q", [count, 0, form.number])
    sent, size, number = header
    if sent == _REFUSED:
        raise caller.explain(
            MismatchError(f"{group.label(source)} has not sent its objects, which cannot be pickled"), group
        )
    try:
        content = bytearray(size)
    except MemoryError:
        with suppress(ShimError):  # the objects are dropped, and their sender goes on
            calls.receive(caller, group, bytearray(), source, tag).wait()
        raise caller.explain(_no_room(size), group) from None
    calls.receive(caller, group, content, source, tag).wait()
    if number != form.number:
        told = f"{group.label(source)} sent objects in another format than this rank receives"
        raise caller.explain(MismatchError(f"{told}\nPass the same arguments on both ranks."), group)
    if sent != count:
        raise caller.explain(
            MismatchError(f"{group.label(source)} sent {_number(sent, form)} where this rank receives {count}"), group
        )
    if is_unknown:
        return Received([None] * count, source)
    sizes = array("q", content[: 8 * count])
    return Received(_unpack(group, memoryview(content)[8 * count :], sizes, form), source)


def _number(count: int, form: Format) -> str:
    return f"{count} object{'s' * (count != 1)}{form.said}"


def _begin(caller: Caller, group: ProcessGroup) -> None:
    """Refuse the call, telling the other ranks, where objects are not allowed."""
    if group.is_alive:  # otherwise the call that follows says why it is not
        try:
            check_allowed()
        except ShimError as error:
            calls.refuse(caller, group, error)


def _pack(caller: Caller, group: ProcessGroup, item: Any, form: Format) -> bytearray:
    if not group.is_alive:
        return bytearray()  # the call that follows says why
    try:
        return pickles.packed(group, item, form)
    except Exception as error:  # a class raises what it likes when it cannot be pickled
        calls.refuse(caller, group, unpicklable(error))


def _pack_if_possible(caller: Caller, group: ProcessGroup, item: Any, form: Format) -> bytearray:
    """Pack what stands for another rank's object in a rehearsal, which nobody has to be able to pickle."""
    del caller
    try:
        return pickles.packed(group, item, form)
    except Exception:
        return pickles.packed(group, None, form)


def _room(caller: Caller, group: ProcessGroup, size: int) -> bytearray:
    """Return *size* bytes, or refuse the call where there is no memory for them."""
    try:
        return bytearray(size)
    except MemoryError:
        calls.refuse(caller, group, _no_room(size))


def _joined(caller: Caller, group: ProcessGroup, packed: Sequence[bytearray]) -> bytearray:
    """Return the pickles one after the other, or refuse the call where there is no memory for that."""
    try:
        return bytearray().join(packed)
    except MemoryError:
        calls.refuse(caller, group, _no_room(sum(map(len, packed))))


def _no_room(size: int) -> OutOfMemoryError:
    return OutOfMemoryError(f"there is not enough memory for {size} bytes of objects")


def unpicklable(raised: Exception) -> TensorError | OutOfMemoryError:
    """Return the error for an object whose pickling *raised*."""
    if isinstance(raised, MemoryError):
        return OutOfMemoryError("there is not enough memory to pickle {input}")
    error = TensorError(f"{{input}} must be picklable, got {type(raised).__name__}: {raised}")
    error.raised = raised
    return error


def _unpack(group: ProcessGroup, everything: bytearray | memoryview, sizes: Sequence[int], form: Format) -> list[Any]:
    """Return the objects whose pickles of *sizes* bytes lie in *everything* one after the other."""
    view = memoryview(everything)
    unpacked = _unpacked_if_known if group.is_rehearsed else pickles.unpacked
    return [unpacked(group, view[end - size : end], form) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _unpacked_if_known(group: ProcessGroup, data: memoryview, form: Format) -> Any:
    """Return the object of a rehearsal's *data*, None where that is made up: the part of another pickle, or zeros."""
    try:
        return pickles.unpacked(group, data, form)
    except Exception:  # as a pickle that is none may raise anything
        return None
