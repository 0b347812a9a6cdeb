"""Lists that collectives of Python objects read and fill, with torch's rules for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import calls, objects
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError
from shim.frontends.torch._calls.arguments import list_at_root, list_of
from shim.frontends.torch._errors import ArgumentTypeError, SlotsMissingError

__all__ = [
    "check_one_slot",
    "check_use_batch",
    "fill",
    "gather_into_slots",
    "objects_at_root",
    "objects_for_all",
    "slots_at_root",
    "some_objects",
]


def gather_into_slots(caller: Caller, members: ProcessGroup, slots: Any, item: Any) -> None:
    """Put every rank's *item* into the list *slots*, whose further slots are left as they are."""
    places = list_of(caller, members, "output", slots)
    _check_slots_for_all(caller, members, places)
    fill(places, objects.all_gather(caller, members, item))


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
