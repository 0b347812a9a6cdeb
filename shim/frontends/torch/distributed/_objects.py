"""Collectives of Python objects, with torch's rules for the lists they fill."""

from __future__ import annotations

from typing import Any

from shim.core import objects
from shim.core.callers import Caller
from shim.frontends.torch.distributed._arguments import list_of, refuse
from shim.frontends.torch.distributed._errors import SlotsMissingError
from shim.frontends.torch.distributed._groups import group_of

__all__ = ["gather_into_slots"]


def gather_into_slots(caller: Caller, group: Any, slots: Any, item: Any) -> None:
    """Put every rank's *item* into the list *slots*, whose further slots are left as they are."""
    members = group_of(caller, group)
    places = list_of(caller, group, "output", slots)
    if len(places) < members.size:
        refuse(
            caller,
            group,
            SlotsMissingError(f"{{output}} must have a slot for each of {members.size} ranks, got {len(places)}"),
        )
    received = objects.all_gather(caller, members, item)
    if received is not None:
        places[: members.size] = received
