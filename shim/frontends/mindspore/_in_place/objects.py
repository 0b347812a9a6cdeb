"""Objects of Python between ranks: what MindSpore asks of the lists they come in, and where the results go.

Sources and destinations are ranks of the world.
"""

from __future__ import annotations

from typing import Any

from shim.core import calls, objects
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError, ShimError
from shim.frontends.mindspore._arguments import group_of, peer_of, root_of
from shim.frontends.mindspore._errors import ArgumentTypeError
from shim.frontends.mindspore._groups.reserved import pass_over_reserved


def all_gather(caller: Caller, object_list: list[Any], obj: Any, group: str | None) -> None:
    """Put each rank's *obj* into its place in every rank's *object_list*."""
    found = group_of(caller, group)
    _one_for_each(caller, found, "object_list", object_list)
    object_list[:] = objects.all_gather(caller, found, obj) or object_list


def gather(caller: Caller, obj: Any, object_gather_list: list[Any] | None, dst: int, group: str | None) -> None:
    """Put each rank's *obj* into its place in *dst*'s *object_gather_list*; the others' is not looked at."""
    found = group_of(caller, group)
    root = root_of(caller, found, dst)
    if found.rank == root:
        _one_for_each(caller, found, "object_gather_list", object_gather_list)
    gathered = objects.gather(caller, found, obj, root)
    if gathered is not None and object_gather_list is not None:
        object_gather_list[:] = gathered


def broadcast(caller: Caller, object_list: list[Any], src: int, group: str | None, device: str | None) -> None:
    """Put copies of *src*'s *object_list* into every other rank's."""
    pass_over_reserved(caller, device=device)
    found = group_of(caller, group)
    root = root_of(caller, found, src)
    _not_empty(caller, found, "object_list", object_list)
    object_list[:] = objects.broadcast(caller, found, object_list, root) or object_list


def scatter(caller: Caller, output_list: list[Any], input_list: list[Any] | None, src: int, group: str | None) -> None:
    """Put this rank's place of *src*'s *input_list* first in *output_list*; the others' inputs are not looked at."""
    found = group_of(caller, group)
    root = root_of(caller, found, src)
    _not_empty(caller, found, "scatter_object_output_list", output_list)
    if found.rank == root:
        _one_for_each(caller, found, "scatter_object_input_list", input_list)
    output_list[0] = objects.scatter(caller, found, input_list, root)


def send(caller: Caller, object_list: list[Any], dst: int, group: str | None, device: str | None) -> None:
    """Send what is in *object_list* to *dst*."""
    pass_over_reserved(caller, device=device)
    found = group_of(caller, group)
    _check(caller, found, object_list)
    peer = peer_of(caller, found, dst)
    objects.send(caller, found, object_list, peer)


def receive(caller: Caller, object_list: list[Any], src: int, group: str | None, device: str | None) -> int:
    """Replace what is in *object_list* by as many objects of *src*, and return 0."""
    pass_over_reserved(caller, device=device)
    found = group_of(caller, group)
    _check(caller, found, object_list)
    peer = peer_of(caller, found, src)
    received = objects.receive(caller, found, len(object_list), peer)
    if received is not None:
        object_list[:] = received.items
    return 0


def _check(caller: Caller, group: ProcessGroup, object_list: object) -> None:
    error: ShimError | None = None
    if not isinstance(object_list, list):
        error = ArgumentTypeError(f"object_list must be a list, got {type(object_list).__name__}")
    elif not object_list:
        error = ArgumentError("object_list must not be empty")
    if error is not None:
        raise caller.explain(error, group)


def _one_for_each(caller: Caller, group: ProcessGroup, parameter: str, given: object) -> None:
    if not isinstance(given, list) or len(given) != group.size:
        what = f"{len(given)} of them" if isinstance(given, list) else type(given).__name__
        wanted = f"{parameter} must be a list with a place for each of {group.size} ranks, got {what}"
        calls.refuse(caller, group, ArgumentTypeError(wanted))


def _not_empty(caller: Caller, group: ProcessGroup, parameter: str, given: object) -> None:
    if not isinstance(given, list) or not given:
        wanted = f"{parameter} must be a list that is not empty, got {given!r}"
        calls.refuse(caller, group, ArgumentTypeError(wanted))
