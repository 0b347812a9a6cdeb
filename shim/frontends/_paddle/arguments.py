"""What paddle requires of arguments beyond what the engine checks, and the lists it fills."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

from shim.core import calls, tensors
from shim.core.callers import Caller, warn_user
from shim.errors import ArgumentError, ShimError, TensorError
from shim.frontends._paddle.errors import ArgumentAssertionError, ArgumentRuntimeError, ArgumentTypeError
from shim.frontends._paddle.groups.group_views import group_of
from shim.frontends._paddle.tasks import Task


def is_now(caller: Caller, group: Any, sync_op: Any) -> bool:
    """Return *sync_op* as a bool."""
    try:
        return bool(sync_op)
    except BaseException as error:  # an array of several elements
        refuse(caller, group, error)


def refuse(caller: Caller, group: Any, error: BaseException) -> NoReturn:
    """Raise *error*, and let the other ranks of *group*, who wait in the same collective, know."""
    try:
        calls.refuse(caller, group_of(caller, group), error)
    finally:
        del error  # see calls.refuse


def places_for(caller: Caller, group: Any, outputs: Any, tensor: Any) -> Any:
    """Return *outputs*, or for an empty list a new tensor like *tensor* for each rank."""
    members = group_of(caller, group)
    if not _is_list(outputs) or len(outputs) > 0 or members.rank < 0:
        return outputs
    return _new_like(caller, group, outputs, [tensor] * members.size)


def exchange_places(caller: Caller, group: Any, outputs: Any, inputs: Any) -> Any:
    """Return *outputs*, or for an empty list a new tensor like each of *inputs*; both must be tensors, or both lists."""
    if group_of(caller, group).rank < 0:
        return outputs
    for role, value in (("output", outputs), ("input", inputs)):
        if value is None:
            refuse(caller, group, ArgumentRuntimeError(f"{{{role}}} must be given, got None"))
    if _is_list(outputs) != _is_list(inputs):
        refuse(
            caller,
            group,
            ArgumentRuntimeError(
                "{output} and {input} must both be tensors or both be lists, "
                f"got a {type(outputs).__qualname__} and a {type(inputs).__qualname__}"
            ),
        )
    if not _is_list(outputs):
        return outputs
    if not inputs:
        refuse(caller, group, ArgumentRuntimeError("{input} must have a tensor for each rank, got an empty list"))
    size = group_of(caller, group).size
    if not outputs and len(inputs) != size:
        told = f"{{input}} must hold {size} tensors, one for each rank, got {len(inputs)}"
        refuse(caller, group, ArgumentError(told))
    return outputs if outputs else _new_like(caller, group, outputs, inputs)


def one_of(caller: Caller, group: Any, role: str, tensor: Any) -> Any:
    """Return *tensor*, which must not be a list: the engine would take its tensors as the ranks' parts."""
    if _is_list(tensor):
        refuse(caller, group, TensorError(f"{{{role}}} must be one tensor, got a {type(tensor).__qualname__}"))
    return tensor


def filled(outputs: Any, places: Any, task: Task | None) -> Task | None:
    """Append *places* to the list *outputs* where they were made for it, now that the call was not refused."""
    if places is not outputs and task is not None:
        outputs.extend(places)
    return task


def splits_of(caller: Caller, group: Any, role: str, sizes: Any) -> Sequence[int] | None:
    """Return the split *sizes* as integers; None and an empty list mean equal parts."""
    if sizes is None:
        return None
    try:
        return [index(size) for size in sizes] or None
    except TypeError:
        refuse(caller, group, ArgumentTypeError(f"{{{role}}} must be a list of integers, got {sizes!r}"))
    except BaseException as error:  # what its own methods raise: the others are told of that too
        refuse(caller, group, error)


def with_rows(tensor: Any, splits: Sequence[int] | None) -> Any:
    """Return *tensor*, or none of it where it has no dimensions and the *splits* ask for no rows, which paddle does not count then."""
    if splits and not any(splits) and getattr(tensor, "ndim", None) == 0:
        return tensor.reshape([1])[:0]
    return tensor


def rank_of(caller: Caller, group: Any, role: str, world_rank: Any) -> int:
    """Return the group rank of *world_rank*."""
    members = group_of(caller, group)
    if members.rank < 0:
        return 0  # outside the group nothing is sent
    try:
        return members.group_rank(_integer(role, world_rank))
    except BaseException as error:  # what its own methods raise: the others are told of that too
        refuse(caller, group, error)


def peer_of(caller: Caller, group: Any, world_rank: Any) -> int:
    """Return the group rank of *world_rank*, which must not be the caller's own."""
    members = group_of(caller, group)
    if members.rank < 0:
        return 0  # outside the group nothing is sent
    try:
        peer = members.group_rank(_integer("peer", world_rank))
        if peer == members.rank:
            raise ArgumentError(f"{{peer}} must be another rank than the caller's own, got {world_rank}")
    except ShimError as error:
        raise caller.explain(error, members) from None
    return peer


def places_at_root(caller: Caller, group: Any, outputs: Any, tensor: Any, root: int) -> Any:
    """Return *outputs* on the group rank *root*, made like *tensor* for an empty list, and None elsewhere."""
    members = group_of(caller, group)
    if members.rank != root:
        _warn_meaningless(caller, "output", outputs, members.rank)
        return None
    if outputs is None:
        refuse(caller, group, ArgumentAssertionError("{output} must be given on the rank that {root} names"))
    if _is_list(outputs) and len(outputs) not in (0, members.size):
        refuse(
            caller,
            group,
            ArgumentAssertionError(f"{{output}} must have {members.size} tensors or none, got {len(outputs)}"),
        )
    return places_for(caller, group, outputs, tensor)


def inputs_at_root(caller: Caller, group: Any, inputs: Any, root: int) -> Any:
    """Return *inputs* on the group rank *root*, where they must be given, and None elsewhere."""
    members = group_of(caller, group)
    if members.rank != root:
        _warn_meaningless(caller, "input", inputs, members.rank)
        return None
    if inputs is None or (_is_list(inputs) and not inputs):
        refuse(caller, group, ArgumentRuntimeError("{input} must be given on the rank that {root} names"))
    return inputs


def _warn_meaningless(caller: Caller, role: str, given: Any, rank: int) -> None:
    if rank >= 0 and given is not None and not (_is_list(given) and not given):
        warn_user(
            f"{caller.function}: {caller.parameters[role]} has no meaning on other ranks than the one "
            f"{caller.parameters['root']} names"
        )


def _integer(role: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise ArgumentTypeError(f"{{{role}}} must be an integer, got {value!r}") from None


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _new_like(caller: Caller, group: Any, outputs: Any, models: Sequence[Any]) -> list[Any]:
    if not isinstance(outputs, list):
        refuse(caller, group, ArgumentError("{output} must be a list where it is to be filled, got an empty tuple"))
    try:
        return [tensors.new_like(model) for model in models]
    except ShimError as error:
        refuse(caller, group, error)


def stream_sync(caller: Caller, group: Any, sync_op: Any, use_calc_stream: Any) -> tuple[Any, bool]:
    """Return *group* and *sync_op* of a collective, without which *use_calc_stream* must not be asked for.

    Host tensors have no streams: what is computed before the call has ended, and a synchronous call ends before what follows.
    """
    is_sync = is_now(caller, group, sync_op)
    if use_calc_stream and not is_sync and group_of(caller, group).rank >= 0:
        refuse(caller, group, _not_without_sync(use_calc_stream))
    return group, is_sync


def stream_point_sync(caller: Caller, group: Any, sync_op: Any, use_calc_stream: Any) -> bool:
    """Return *sync_op* of a send or a receive, which concerns no other rank until it begins."""
    if use_calc_stream and not sync_op and group_of(caller, group).rank >= 0:
        raise caller.explain(_not_without_sync(use_calc_stream), group_of(caller, group))
    return bool(sync_op)


def _not_without_sync(use_calc_stream: Any) -> ArgumentRuntimeError:
    return ArgumentRuntimeError(
        f"use_calc_stream must be False when sync_op is False, got use_calc_stream={use_calc_stream!r}"
    )
