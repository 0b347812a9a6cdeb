"""Collectives of Python objects, with torch's rules for the lists they fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core import objects
from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends.torch.distributed._arguments import list_at_root, list_of, peer_of, refuse, root_of, source_of, told
from shim.frontends.torch.distributed._errors import ArgumentTypeError, SlotsMissingError
from shim.frontends.torch.distributed._groups import group_of
from shim.frontends.torch.distributed._options import refuse_device

__all__ = [
    "broadcast_list",
    "gather_at_root",
    "gather_into_slots",
    "receive_list",
    "scatter_list",
    "send_list",
]


def gather_into_slots(caller: Caller, group: Any, slots: Any, item: Any) -> None:
    """Put every rank's *item* into the list *slots*, whose further slots are left as they are."""
    members = group_of(caller, group)
    places = _slots_for_all(caller, group, list_of(caller, group, "output", slots))
    received = objects.all_gather(caller, members, item)
    if received is not None:
        places[: members.size] = received


def gather_at_root(caller: Caller, group: Any, slots: Any, item: Any, dst: Any, group_dst: Any) -> None:
    """Put every rank's *item* into the list *slots* of the root, whose further slots are left as they are."""
    members = group_of(caller, group)
    root = root_of(caller, members, dst, group_dst, 0)
    places = list_at_root(caller, group, "output", slots, root)
    if places is not None:
        _slots_for_all(caller, group, places)
    received = objects.gather(caller, members, item, root)
    if places is not None and received is not None:
        places[: members.size] = received


def broadcast_list(caller: Caller, group: Any, items: Any, src: Any, group_src: Any, device: Any) -> None:
    """Replace *items* by copies of the root's, which keeps its own, in a sequence of any kind."""
    members = group_of(caller, group)
    told(caller, group, refuse_device, "device", device)
    root = root_of(caller, members, src, group_src, 0)
    is_given = members.rank == root and isinstance(items, Sequence)
    places = items if is_given else list_of(caller, group, "output", items)
    if not places:
        refuse(caller, group, _nothing_in("output"))
    received = objects.broadcast(caller, members, places, root)
    if received is not None and not is_given:
        places[:] = received


def scatter_list(caller: Caller, group: Any, slots: Any, items: Any, src: Any, group_src: Any) -> None:
    """Put the rank's place in the root's *items* into the first of *slots*."""
    members = group_of(caller, group)
    root = root_of(caller, members, src, group_src, 0)
    if not isinstance(slots, list) or not slots:
        refuse(caller, group, ArgumentError(f"{{output}} must be a list with a slot for an object, got {slots!r}"))
    if members.rank == root and (not isinstance(items, (list, tuple)) or len(items) != members.size):
        given = len(items) if isinstance(items, (list, tuple)) else repr(items)
        refuse(
            caller,
            group,
            ArgumentError(f"{{input}} must hold an object for each of {members.size} ranks on {{root}}, got {given}"),
        )
    received = objects.scatter(caller, members, items, root)
    if members.rank >= 0:
        slots[0] = received


def send_list(caller: Caller, group: Any, items: Any, dst: Any, group_dst: Any, device: Any, use_batch: bool) -> None:
    """Send *items*, a sequence of any kind, to one rank."""
    _check_use_batch(caller, use_batch)
    items = list(items) if isinstance(items, Sequence) else items
    members = group_of(caller, group)
    refuse_device(caller, "device", device)
    peer = peer_of(caller, members, dst, group_dst)
    objects.send(caller, members, _some(caller, group, "input", items), peer)


def receive_list(caller: Caller, group: Any, slots: Any, src: Any, group_src: Any, device: Any, use_batch: bool) -> int:
    """Fill the list *slots* with what one rank, or any, sends and return its rank in the world, -1 outside the group."""
    _check_use_batch(caller, use_batch)
    members = group_of(caller, group)
    refuse_device(caller, "device", device)
    peer = source_of(caller, members, src, group_src)
    places = _some(caller, group, "output", slots)
    received = objects.receive(caller, members, len(places), peer)
    if received is None:
        return -1
    places[:] = received.items
    return members.world_rank(received.source)


def _slots_for_all(caller: Caller, group: Any, places: list[Any]) -> list[Any]:
    """Return *places*, of which there must be one for each rank."""
    size = group_of(caller, group).size
    if len(places) < size:
        refuse(
            caller,
            group,
            SlotsMissingError(f"{{output}} must have a slot for each of {size} ranks, got {len(places)}"),
        )
    return places


def _some(caller: Caller, group: Any, role: str, items: Any) -> list[Any]:
    """Return *items*, which must be a list of at least one."""
    if isinstance(items, list) and items:
        return items
    error = _nothing_in(role) if isinstance(items, list) else _no_list(role, items)
    raise caller.explain(error, group_of(caller, group))


def _nothing_in(role: str) -> ArgumentError:
    return ArgumentError(f"{{{role}}} must hold at least one object, got an empty list")


def _no_list(role: str, items: Any) -> ArgumentTypeError:
    return ArgumentTypeError(f"{{{role}}} must be a list, got a {type(items).__qualname__}")


def _check_use_batch(caller: Caller, use_batch: Any) -> None:
    """Raise unless *use_batch* is a bool. Either will do: what it spares torch, connections of two ranks, there are none of."""
    if not isinstance(use_batch, bool):
        raise caller.explain(ArgumentTypeError(f"use_batch must be a bool, got {use_batch!r}"))
