"""Python objects in collectives: the lists that are read and filled, objects in tensors of bytes as torch's internals put them there, and
objects shared along with how it went, so that what fails on one rank is raised on every rank.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shim.core import calls, groups, objects, pickles
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.objects import check_allowed, unpicklable
from shim.errors import ArgumentError, MismatchError, ShimError
from shim.frontends.torch._calls.arguments import list_at_root, list_of, root_of
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError, SlotsMissingError
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._restricted_objects import format_of


def gather_into_slots(caller: Caller, members: ProcessGroup, slots: Any, item: Any, weights_only: Any = False) -> None:
    """Put every rank's *item* into the list *slots*, whose further slots are left as they are."""
    places = list_of(caller, members, "output", slots)
    _check_slots_for_all(caller, members, places)
    fill(places, objects.all_gather(caller, members, item, format_of(caller, members, weights_only)))


def fill(slots: list[Any] | None, received: Sequence[Any] | None) -> None:
    """Put *received* into the first of *slots*; None stands for nothing, where this rank gets or keeps none."""
    if slots is not None and received is not None:
        slots[: len(received)] = received


def slots_at_root(caller: Caller, members: ProcessGroup, slots: Any, root: int) -> list[Any] | None:
    """Return the list *slots* on the group rank *root*, with one for each rank, and None on the others, which give none."""
    places = list_at_root(caller, members, "output", slots, root)
    if places is not None:
        _check_slots_for_all(caller, members, places)
    return places


def objects_at_root(caller: Caller, members: ProcessGroup, items: Any, root: int) -> Any:
    """Return *items*, a sequence on the group rank *root* and a list elsewhere, of at least one."""
    is_given = members.rank == root and isinstance(items, Sequence)
    places = items if is_given else list_of(caller, members, "output", items)
    if not places:
        calls.refuse(caller, members, _nothing_in("output"))
    return places


def check_one_slot(caller: Caller, members: ProcessGroup, slots: Any) -> None:
    """Refuse *slots* that are no list with at least one."""
    if not isinstance(slots, list) or not slots:
        error = ArgumentError(f"{{output}} must be a list with a slot for an object, got {slots!r}")
        calls.refuse(caller, members, error)


def objects_for_all(caller: Caller, members: ProcessGroup, items: Any, root: int) -> Any:
    """Return *items*, which must be a list with an object for each rank on the group rank *root*."""
    if members.rank == root and (not isinstance(items, (list, tuple)) or len(items) != members.size):
        given = len(items) if isinstance(items, (list, tuple)) else repr(items)
        calls.refuse(
            caller,
            members,
            ArgumentError(f"{{input}} must hold an object for each of {members.size} ranks on {{root}}, got {given}"),
        )
    return items


def some_objects(caller: Caller, members: ProcessGroup, role: str, items: Any) -> list[Any]:
    """Return *items*, which must be a list of at least one."""
    if isinstance(items, list) and items:
        return items
    error = _nothing_in(role) if isinstance(items, list) else _no_list(role, items)
    raise caller.explain(error, members)


def check_use_batch(caller: Caller, use_batch: Any) -> None:
    """Raise unless *use_batch* is a bool. Either will do: what it spares torch, connections of two ranks, there are none of."""
    if not isinstance(use_batch, bool):
        raise caller.explain(ArgumentTypeError(f"use_batch must be a bool, got {use_batch!r}"))


def _check_slots_for_all(caller: Caller, members: ProcessGroup, places: list[Any]) -> None:
    if len(places) < members.size:
        error = SlotsMissingError(f"{{output}} must have a slot for each of {members.size} ranks, got {len(places)}")
        calls.refuse(caller, members, error)


def _nothing_in(role: str) -> ArgumentError:
    return ArgumentError(f"{{{role}}} must hold at least one object, got an empty list")


def _no_list(role: str, items: Any) -> ArgumentTypeError:
    return ArgumentTypeError(f"{{{role}}} must be a list, got a {type(items).__qualname__}")


def pickled(caller: Caller, members: ProcessGroup, item: Any, weights_only: Any) -> bytearray:
    """Return the pickle of *item*, or what torch.save makes of it if *weights_only*."""
    try:
        return pickles.packed(members, item, format_of(caller, members, weights_only))
    except Exception as error:  # a class raises what it likes when it cannot be pickled
        raise caller.explain(unpicklable(error), members) from None


def unpickled(caller: Caller, members: ProcessGroup, packed: bytes, weights_only: Any) -> Any:
    """Return what *packed* is the pickle of, where that is allowed."""
    try:
        check_allowed()
    except ShimError as error:
        raise caller.explain(error, members) from None
    return pickles.unpacked(members, packed, format_of(caller, members, weights_only))


_Payload = TypeVar("_Payload")


@dataclass
class SyncPayload(Generic[_Payload]):
    """What a rank shares: its *payload* of *stage_name*, or the *exception* that came instead of a *success*."""

    stage_name: str | None
    success: bool
    payload: _Payload
    exception: Exception | None = None


def broadcast_stage(
    caller: Caller, data_or_fn: Any, success: bool, stage_name: str | None, rank: int, group: Any
) -> Any:
    """Do what ``collective_utils.broadcast`` documents; without a group rank 0 is the caller."""
    if not success and data_or_fn is not None:
        error = ArgumentAssertionError("{input} must be None when success is False")
        if group is None:
            raise caller.explain(error)
        calls.refuse(caller, group_of(caller, group), error)
    members = None if group is None else group_of(caller, group)
    root = 0 if members is None else root_of(caller, members, None, rank)
    is_root = rank == 0 if members is None else members.rank == root
    shared = _produced(data_or_fn if is_root else None, stage_name, success)
    if members is not None:
        received = objects.broadcast(caller, members, [shared], root)
        shared = shared if received is None else received[0]
    if not shared.success:
        raise caller.explain(_failure(shared, rank), members) from shared.exception
    return shared.payload


def all_gather_stage(caller: Caller, data_or_fn: Any, stage_name: str | None, group: Any) -> list[Any]:
    """Do what ``collective_utils.all_gather`` documents."""
    mine = _produced(data_or_fn, stage_name, True)
    members = None if group is None else group_of(caller, group)
    shared = [mine] if members is None else objects.all_gather(caller, members, mine)
    if shared is None:
        return []
    _check_stages(caller, members, shared)
    for rank, one in enumerate(shared):
        if not one.success:
            raise caller.explain(_failure(one, rank), members) from one.exception
    return [one.payload for one in shared]


def all_gather_of_type(caller: Caller, group: Any, slots: Any, item: Any, is_alike: Callable[[Any, Any], bool]) -> None:
    """Do what ``all_gather_object_enforce_type`` documents."""
    members = group_of(caller, group)
    gather_into_slots(caller, members, slots, item)
    places = list_of(caller, members, "output", slots)
    for place, other in enumerate(places[1:], 1):
        if not is_alike(places[0], other):
            kinds = f"{type(places[0]).__qualname__} at 0 and {type(other).__qualname__} at {place}"
            error = ArgumentTypeError(f"{{input}} must be of one type on every rank, got {kinds}")
            raise caller.explain(error, members)


def _produced(data_or_fn: Any, stage_name: str | None, success: bool) -> SyncPayload[Any]:
    """Return *data_or_fn*, or what it returns or raises when it is called, to be shared."""
    if not callable(data_or_fn):
        return SyncPayload(stage_name, success, data_or_fn)
    try:
        return SyncPayload(stage_name, success, data_or_fn())
    except Exception as error:  # the other ranks are to raise it too, whatever it is
        return SyncPayload(stage_name, False, None, _to_be_sent(error))


def _to_be_sent(error: Exception) -> Exception:
    """Return *error*, or a RuntimeError that tells of it when what pickle makes of it is no exception elsewhere."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # a class raises what it likes when it cannot be pickled, or not be made again
        pass
    reason = traceback.format_exception_only(type(error), error)[-1].strip()
    told = RuntimeError("\n".join([reason, *traceback.format_exception(type(error), error, error.__traceback__)]))
    told.__cause__ = error  # for this rank: it is not sent
    return told


def _check_stages(caller: Caller, members: groups.ProcessGroup | None, shared: Sequence[SyncPayload[Any]]) -> None:
    names = [one.stage_name for one in shared]
    if len(set(names)) > 1:
        raise caller.explain(MismatchError(f"stage_name must be the same on every rank, got {names}"), members)


def _failure(shared: SyncPayload[Any], rank: int) -> MismatchError:
    stage = "" if shared.stage_name is None else f" in stage {shared.stage_name!r}"
    reason = "" if shared.exception is None else f": {type(shared.exception).__name__}: {shared.exception}"
    return MismatchError(f"rank {rank} failed{stage}{reason}")
