"""MindSpore's group names: which process group each of them means."""

from __future__ import annotations

import os
from collections.abc import Callable

from shim.core import groups
from shim.core.callers import Caller
from shim.core.groups import ProcessGroup
from shim.errors import RankError, StateError
from shim.frontends.mindspore._errors import ArgumentTypeError

FRONTEND = "mindspore"
HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"

_WORLD_NAMES = frozenset({HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP})


class GlobalComm:
    """What MindSpore's programs read of the world: the backend's string, the world's name, and whether it is there.

    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/communication/mindspore.communication.GlobalComm.html
    """

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def is_initialized() -> bool:
    """Tell whether this frontend is in the world."""
    return groups.world_of(FRONTEND) is not None


def is_world(name: str) -> bool:
    """Tell whether *name* means all ranks."""
    return name in _WORLD_NAMES or name == GlobalComm.WORLD_COMM_GROUP


def known_group(caller: Caller, name: str | None) -> ProcessGroup:
    """Return the process group called *name*; None means the world, and so does each of its three names.

    Raises ArgumentTypeError for a name that is no str, StateError for one that no group has and before initialisation.
    """
    world = groups.world_of(FRONTEND)
    # is_world, but for its frame: 60 ns
    if world is not None and (name is None or (isinstance(name, str) and (name in _WORLD_NAMES or is_world(name)))):
        return world
    name = None if name is None else string(caller, "{group}", name)
    if world is None or name is None:
        raise caller.explain(StateError("the world is not initialised\nCall init() or init_process_group() first."))
    group = groups.find_group(name)
    if group is None:
        raise caller.explain(
            StateError(f"there is no group named {name!r}\nIt was never created, or it has been destroyed.")
        )
    return group


def named_group(caller: Caller, name: str) -> ProcessGroup:
    """Return the process group called *name*, which must be a str."""
    return known_group(caller, string(caller, "{group}", name))


def group_name(caller: Caller, name: str) -> str:
    """Return *name*, which must be a str, where None is not another way to name the world."""
    return string(caller, "{group}", name)


def answer(caller: Caller, name: str, of: Callable[[ProcessGroup], int], variable: str, default: int) -> int:
    """Return what *of* says of the group called *name*.

    Before initialisation the environment's *variable* answers for every group, or *default*, as in MindSpore.
    """
    string(caller, "{group}", name)
    if is_initialized():
        return of(known_group(caller, name))
    text = os.environ.get(variable, "")
    if text and not text.isdecimal():
        raise caller.explain(StateError(f"the environment's {variable} must be a number, got {text!r}"))
    return int(text) if text else default


def answer_or_minus_one(
    caller: Caller, name: str | None, of: Callable[[ProcessGroup], int], variable: str, default: int
) -> int:
    """Return what ``answer`` returns, but -1 where there is no such group, as ``mint.distributed`` documents, or the caller is outside.

    MindSpore's new_group gives a process outside no name to ask with.
    """

    def of_member(found: ProcessGroup) -> int:
        return of(found) if found.rank >= 0 else -1

    try:
        return answer(caller, GlobalComm.WORLD_COMM_GROUP if name is None else name, of_member, variable, default)
    except StateError:
        return -1


def backend_of(caller: Caller, name: str | None) -> str:
    """Return the backend's string, which MindSpore reads from the group's name."""
    if name is None:
        return "hccl"
    for backend in ("hccl", "mccl"):
        if backend in string(caller, "{group}", name):
            return backend
    return known_group(caller, name).backend


def world_rank(caller: Caller, name: str | None, group_rank: int) -> int:
    """Return the world's rank of *group_rank* in the group called *name*."""
    return _translated(caller, known_group(caller, name).world_rank, group_rank)


def group_rank(caller: Caller, name: str | None, world_rank: int) -> int:
    """Return the rank in the group called *name* of the world's *world_rank*."""
    return _translated(caller, known_group(caller, name).group_rank, world_rank)


def _translated(caller: Caller, translate: Callable[[int], int], rank: int) -> int:
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise caller.explain(ArgumentTypeError(f"{{rank}} must be an int, got {type(rank).__name__}"))
    try:
        return translate(rank)
    except RankError as error:
        raise caller.explain(error) from None


def string(caller: Caller, parameter: str, value: object) -> str:
    """Return *value*, which must be a str."""
    if not isinstance(value, str):
        raise caller.explain(ArgumentTypeError(f"{parameter} must be a str, got {type(value).__name__}"))
    return value
