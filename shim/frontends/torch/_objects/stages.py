"""Objects shared between ranks along with how it went: what fails on one rank is raised on every rank."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shim.core import calls, groups, objects
from shim.core.callers import Caller
from shim.errors import MismatchError
from shim.frontends.torch._calls.arguments import list_of, root_of
from shim.frontends.torch._errors import ArgumentAssertionError, ArgumentTypeError
from shim.frontends.torch._groups.group_arguments import group_of
from shim.frontends.torch._objects.lists import gather_into_slots

__all__ = ["SyncPayload", "all_gather", "all_gather_of_type", "broadcast"]

_Payload = TypeVar("_Payload")


@dataclass
class SyncPayload(Generic[_Payload]):
    """What a rank shares: its *payload* of *stage_name*, or the *exception* that came instead of a *success*."""

    stage_name: str | None
    success: bool
    payload: _Payload
    exception: Exception | None = None


def broadcast(caller: Caller, data_or_fn: Any, success: bool, stage_name: str | None, rank: int, group: Any) -> Any:
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


def all_gather(caller: Caller, data_or_fn: Any, stage_name: str | None, group: Any) -> list[Any]:
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
