"""What torch requires of arguments beyond what the engine checks, and its ways to name a rank."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.core.tensors.repeats import has_repeated
from shim.errors import ArgumentError, RankError, ShimError, TensorError, UnsupportedError
from shim.frontends.torch._errors import ArgumentTypeError


def is_now(caller: Caller, members: ProcessGroup, async_op: Any) -> bool:
    """Return whether a call is synchronous: the opposite of *async_op*, which need not be a bool."""
    try:
        return not async_op
    except BaseException as error:  # an array of several elements
        calls.refuse(caller, members, error)


def told(caller: Caller, members: ProcessGroup, check: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``check(caller, *arguments)``; when that refuses the arguments, let the other ranks of *members* know."""
    try:
        return check(caller, *arguments)
    except BaseException as error:  # what the arguments' own methods raise: the others are told of that too
        reason = str(error) if isinstance(error, ShimError) else f"{caller.function}: {error!r}"
        calls.tell(members, reason)
        raise


def list_of(caller: Caller, members: ProcessGroup, role: str, tensors: Any) -> list[Any]:
    """Return *tensors*, or what else the list is of, which must be a list."""
    if not isinstance(tensors, list):
        kind = type(tensors).__qualname__
        calls.refuse(caller, members, ArgumentTypeError(f"{{{role}}} must be a list, got a {kind}"))
    return tensors


def outputs_of(caller: Caller, members: ProcessGroup, role: str, tensors: Any) -> list[Any]:
    """Return the items of *tensors*, which must be a list of different tensors: each is written by another rank."""
    outputs: list[Any] = tensors
    if type(tensors) is not list:  # a subclass iterates as it likes: what is looked at here is what is written
        listed = list_of(caller, members, role, tensors)
        outputs = told(caller, members, lambda _: list(listed))
    if has_repeated(outputs):
        repeated = told(caller, members, lambda _: _first_repeated(outputs))
        if repeated is not None:
            first, place = repeated
            calls.refuse(
                caller,
                members,
                ArgumentError(
                    f"{{{role}}} must hold a different tensor for each rank, got the same at {first} and {place}\n"
                    "[tensor] * n names one tensor n times: make each of them."
                ),
            )
    return outputs


def _first_repeated(outputs: list[Any]) -> tuple[int, int] | None:
    """Return the places of the first tensor that is in *outputs* twice, or None where all such are empty."""
    seen: dict[int, int] = {}
    for place, tensor in enumerate(outputs):
        first = seen.setdefault(id(tensor), place)
        if first < place and _has_elements(tensor):
            return first, place
    return None


def _has_elements(tensor: Any) -> bool:
    if hasattr(tensor, "shape"):
        return 0 not in tuple(tensor.shape)
    return hasattr(tensor, "__len__") and len(tensor) > 0


def one_of(caller: Caller, members: ProcessGroup, role: str, tensor: Any) -> Any:
    """Return *tensor*, which must not be a list: the engine would take its tensors as the ranks' parts."""
    if issubclass(type(tensor), (list, tuple)):  # isinstance would ask the tensor for its __class__ too
        calls.refuse(caller, members, TensorError(f"{{{role}}} must be one tensor, got a {type(tensor).__qualname__}"))
    return tensor


def is_sparse(tensor: Any) -> bool:
    """Tell whether *tensor* is one of torch's in the sparse layout that all_reduce takes."""
    torch: Any = sys.modules.get("torch")
    if torch is None or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return bool(tensor.layout is torch.sparse_coo and tensor.device.type == "cpu")


def check_dense(caller: Caller, members: ProcessGroup, tensor: Any) -> None:
    """Refuse *tensor* among coalesced calls if it is sparse, as gloo does."""
    if is_sparse(tensor):
        hint = "Call all_reduce for the sparse tensor alone, which takes it."
        calls.refuse(caller, members, UnsupportedError(f"{{input}} must be dense in coalesced calls\n{hint}"))


def tag_of(caller: Caller, members: ProcessGroup, tag: Any) -> int:
    """Return *tag*, which must be an integer."""
    return tag if type(tag) is int else integer_of(caller, members, "tag", tag)


def integer_of(caller: Caller, members: ProcessGroup, name: str, number: Any) -> int:
    """Return *number*, called *name*, which must be an integer; the other ranks of *members* are not told when it is none."""
    try:
        return index(number)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"{name} must be an integer, got {number!r}"), members) from None


def splits_of(caller: Caller, members: ProcessGroup, role: str, sizes: Any) -> Sequence[int] | None:
    """Return the split *sizes* as integers; None and an empty list mean equal parts."""
    if sizes is None:
        return None
    try:
        return [index(size) for size in sizes] or None
    except TypeError:
        calls.refuse(caller, members, ArgumentTypeError(f"{{{role}}} must be a list of integers, got {sizes!r}"))
    except BaseException as error:  # what its own methods raise: the others are told of that too
        calls.refuse(caller, members, error)


def root_of(caller: Caller, members: ProcessGroup, world_rank: Any, group_rank: Any, default: int | None = None) -> int:
    """Return the group rank of the root, named by its rank in the world or in the group; *default* is a world rank."""
    if group_rank is None and type(world_rank) is int and world_rank in members.group_ranks:
        return members.group_ranks[world_rank]
    try:
        return _rank_in(members, world_rank, group_rank, default)
    except BaseException as error:  # what its own methods raise: the others are told of that too
        calls.refuse(caller, members, error)


def peer_of(caller: Caller, members: ProcessGroup, world_rank: Any, group_rank: Any) -> int:
    """Return the group rank of the other rank of a send or receive, which must not be the caller's own."""
    if group_rank is None and type(world_rank) is int and world_rank in members.group_ranks:
        peer = members.group_ranks[world_rank]
    else:
        peer = partner_of(caller, members, world_rank, group_rank)
    if peer == members.rank:
        name = "{peer}" if group_rank is None else "group_{peer}"
        raise caller.explain(ArgumentError(f"{name} must be another rank than the caller's own, got {peer}"), members)
    return peer


def partner_of(caller: Caller, members: ProcessGroup, world_rank: Any, group_rank: Any) -> int:
    """Return the group rank of the other end of a send or receive in the background, which may be the caller itself."""
    try:
        return _rank_in(members, world_rank, group_rank, None)
    except ShimError as error:
        raise caller.explain(error, members) from None


def source_of(caller: Caller, members: ProcessGroup, world_rank: Any, group_rank: Any) -> int | None:
    """Return the group rank to receive from, None for any."""
    return None if world_rank is None and group_rank is None else peer_of(caller, members, world_rank, group_rank)


def partner_or_any(caller: Caller, members: ProcessGroup, world_rank: Any, group_rank: Any) -> int | None:
    """Return the group rank to receive from, which may be the caller itself; None for any."""
    return None if world_rank is None and group_rank is None else partner_of(caller, members, world_rank, group_rank)


def list_at_root(caller: Caller, members: ProcessGroup, role: str, tensors: Any, root: int) -> list[Any] | None:
    """Return *tensors*, which must be a list on the group rank *root*, and None or empty on the others."""
    is_missing = told(
        caller, members, lambda _: tensors is None or (isinstance(tensors, (list, tuple)) and not tensors)
    )
    if members.rank == root:
        if is_missing:
            calls.refuse(caller, members, ArgumentError(f"{{{role}}} must be given on the rank that {{root}} names"))
        return list_of(caller, members, role, tensors)
    if not is_missing and members.rank >= 0:
        calls.refuse(
            caller, members, ArgumentError(f"{{{role}}} must not be given on other ranks than the one {{root}} names")
        )
    return None


def outputs_at_root(caller: Caller, members: ProcessGroup, role: str, tensors: Any, root: int) -> list[Any] | None:
    """Return *tensors* as ``list_at_root`` does; they must be different tensors."""
    outputs = list_at_root(caller, members, role, tensors, root)
    return None if outputs is None else outputs_of(caller, members, role, outputs)


def _rank_in(members: ProcessGroup, world_rank: Any, group_rank: Any, default: int | None) -> int:
    if members.rank < 0:
        return 0  # outside the group nothing is sent
    if world_rank is not None and group_rank is not None:
        raise ArgumentError(f"{{root}} and group_{{root}} must not both be given, got {world_rank} and {group_rank}")
    if group_rank is not None:
        rank = _integer("group_{root}", group_rank)
        if not 0 <= rank < members.size:
            raise RankError(f"group_{{root}} must be in 0..{members.size - 1}, got {rank}")
        return rank
    if world_rank is None:
        world_rank = default
    if world_rank is None:
        raise ArgumentError("{root} or group_{root} must be given")
    return members.group_rank(_integer("{root}", world_rank))


def _integer(role: str, rank: Any) -> int:
    try:
        return index(rank)
    except TypeError:
        raise ArgumentTypeError(f"{role} must be an integer, got {rank!r}") from None
