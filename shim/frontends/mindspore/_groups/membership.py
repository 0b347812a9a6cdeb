"""How a process gets into the world and into groups, and out of them."""

from __future__ import annotations

import hashlib
import sys
from datetime import timedelta
from typing import Any

from shim.core import groups
from shim.core.callers import Caller, warn_user
from shim.core.groups import ProcessGroup
from shim.errors import ArgumentError, UnsupportedError
from shim.frontends.mindspore._errors import ArgumentTypeError, BackendNameError
from shim.frontends.mindspore._groups.group_names import (
    FRONTEND,
    HCCL_WORLD_COMM_GROUP,
    GlobalComm,
    is_initialized,
    is_world,
    known_group,
    string,
)
from shim.frontends.mindspore._groups.numpy_versions import numpy_advice, take_first_error
from shim.frontends.mindspore._groups.reserved import pass_over_reserved
from shim.frontends.mindspore._groups.stores import TCPStore

_WORLDS = {backend: f"{backend}_world_group" for backend in ("hccl", "nccl", "mccl")}


def initialize_with_backend(caller: Caller, backend_name: str | None) -> None:
    """Enter the world that the launcher's environment describes. All three of MindSpore's backends mean the one engine."""
    backend = "hccl" if backend_name is None else string(caller, "backend_name", backend_name)
    if backend not in _WORLDS:
        raise caller.explain(BackendNameError(f"backend_name must be one of {', '.join(_WORLDS)}, got {backend!r}"))
    was_there = is_initialized()
    groups.enter_world(caller, FRONTEND, backend=backend)
    if not was_there:
        _entered(caller, backend, _WORLDS[backend])


def initialize(
    caller: Caller,
    *,
    backend: str,
    init_method: str | None,
    timeout: timedelta | None,
    world_size: int,
    rank: int,
    store: Any,
    group_name: str,
    pg_options: Any,
    device_id: Any,
) -> None:
    """Enter the world as ``mint.distributed`` does: *rank* and *world_size* may be left to the environment with -1.

    With a *store*, through which the ranks meet, they may not.
    """
    if backend != "hccl":
        raise caller.explain(ArgumentError(f"backend must be 'hccl', which means this engine, got {backend!r}"))
    if init_method is not None and store is not None:
        raise caller.explain(ArgumentError("init_method and store exclude each other, got both"))
    if store is not None and not isinstance(store, TCPStore):
        raise caller.explain(_wrong_type("store", "a TCPStore", store))
    _refuse(caller, pg_options=pg_options)
    pass_over_reserved(caller, device_id=device_id)
    name = string(caller, "group_name", group_name)
    was_there = is_initialized()
    groups.enter_world(
        caller,
        FRONTEND,
        rank=_number(caller, "rank", rank, 0),
        world_size=_number(caller, "world_size", world_size, 1),
        init_method=None if init_method is None else string(caller, "init_method", init_method),
        store=store,
        backend=backend,
        timeout=_seconds(caller, timeout) or groups.DEFAULT_TIMEOUT,
    )
    if not was_there:
        _entered(caller, backend, name or _WORLDS[backend])
    elif name and not is_world(name):
        warn_user(f"{caller.function}: the world is there already, and named {GlobalComm.WORLD_COMM_GROUP!r}")


def _entered(caller: Caller, backend: str, world_name: str) -> None:
    GlobalComm.BACKEND = backend
    GlobalComm.WORLD_COMM_GROUP = world_name
    GlobalComm.INITED = True
    take_first_error()
    if "mindspore" in sys.modules and groups.world(caller).rank == 0 and (advice := numpy_advice()):
        warn_user(advice, RuntimeWarning)


def leave() -> None:
    """Let the world go; it stays for the other frontends that are in it."""
    groups.leave_world(FRONTEND)
    GlobalComm.BACKEND = "hccl"
    GlobalComm.WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    GlobalComm.INITED = False


def destroy(caller: Caller, name: str | None) -> None:
    """Destroy the group called *name*; for the world, or None, leave it."""
    group = known_group(caller, name)
    if name is None or is_world(name):
        leave()
    else:
        groups.close_group(group)


def destroy_subgroup(caller: Caller, name: str) -> None:
    """Destroy the group called *name*, which may not be the world."""
    if is_world(string(caller, "{group}", name)):
        raise caller.explain(
            ArgumentError(f"{{group}} must not be the world, got {name!r}\nThe world ends with release().")
        )
    groups.close_group(known_group(caller, name))


def create(caller: Caller, name: str, ranks: list[int], options: Any) -> None:
    """Make a group called *name* of *ranks*, in the order given; making it again changes nothing.

    Raises ArgumentError, which is a ValueError, for a name that other ranks have.
    """
    string(caller, "{group}", name)
    _refuse(caller, options=options)
    _list(caller, ranks)
    known_group(caller, None)
    found = groups.find_group(name)
    if found is None:
        groups.new_group(caller, ranks, name=name)
    elif found.ranks == tuple(ranks):
        warn_user(f"{caller.function}: group {name!r} exists already")
    else:
        raise caller.explain(ArgumentError(f"{{group}} {name!r} exists already, with ranks {list(found.ranks)}"))


def subgroup(
    caller: Caller,
    ranks: list[int] | None,
    *,
    timeout: timedelta | None,
    backend: str | None,
    use_local_synchronization: bool,
    description: str | None,
    **unused: Any,
) -> str:
    """Make a group of *ranks*, sorted, and return its name, which is the same for the same ranks, or find it.

    Members wait for each other and for nobody else, which is local synchronisation, whatever the flag says.
    """
    _refuse(caller, **unused)
    if not isinstance(use_local_synchronization, bool):
        raise caller.explain(_wrong_type("use_local_synchronization", "a bool", use_local_synchronization))
    if backend not in (None, "hccl", "mccl"):
        raise caller.explain(ArgumentTypeError(f"backend must be 'hccl' or 'mccl', got {backend!r}"))
    limit = _seconds(caller, timeout)
    world = known_group(caller, None)
    if ranks is None:
        name, found = GlobalComm.WORLD_COMM_GROUP, world
    else:
        name = _name_of(_list(caller, ranks), backend or "hccl")
        found = groups.find_group(name) or _made(caller, ranks, name, backend, limit or world.timeout, description)
        if sorted(ranks) != list(found.ranks):
            raise caller.explain(ArgumentError(f"{{ranks}} are to be group {name!r}, which has {list(found.ranks)}"))
    if (limit or found.timeout) != found.timeout or (description or found.description) != found.description:
        warn_user(f"{caller.function}: the group of these ranks exists already, with its own timeout and description")
    return name


def _made(
    caller: Caller, ranks: list[int], name: str, backend: str | None, limit: float, description: str | None
) -> ProcessGroup:
    group = groups.new_group(caller, sorted(ranks), name=name, backend=backend or "hccl", timeout=limit)
    group.description = description or ""
    return group


def _name_of(ranks: list[int], backend: str) -> str:
    """Return MindSpore's own name for the group, so that programs that rebuild it find it."""
    members = "_".join(map(str, sorted(ranks)))
    return f"{backend}_{len(ranks)}_{hashlib.sha1(members.encode(), usedforsecurity=False).hexdigest()}"


def _list(caller: Caller, ranks: object) -> list[int]:
    if not isinstance(ranks, list):
        raise caller.explain(_wrong_type("{ranks}", "a list of int", ranks))
    for rank in ranks:
        if not isinstance(rank, int) or isinstance(rank, bool):
            raise caller.explain(_wrong_type("{ranks}", "a list of int", rank))
    return ranks


def _number(caller: Caller, parameter: str, value: object, least: int) -> int | None:
    """Return *value*, or None for the -1 that leaves it to the environment."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise caller.explain(_wrong_type(parameter, "an int", value))
    if value != -1 and value < least:
        raise caller.explain(ArgumentError(f"{parameter} must be at least {least}, or -1, got {value}"))
    return None if value == -1 else value


def _seconds(caller: Caller, timeout: object) -> float | None:
    if timeout is not None and not isinstance(timeout, timedelta):
        raise caller.explain(_wrong_type("timeout", "a datetime.timedelta", timeout))
    if timeout is not None and timeout <= timedelta(0):
        raise caller.explain(ArgumentError(f"timeout must be positive, got {timeout}"))
    return None if timeout is None else timeout.total_seconds()


def _wrong_type(parameter: str, wanted: str, value: object) -> ArgumentTypeError:
    return ArgumentTypeError(f"{parameter} must be {wanted}, got {type(value).__name__}")


def _refuse(caller: Caller, **unused: object) -> None:
    """Refuse arguments that the engine has no use for, unless they are None; of options for HCCL alone, say so."""
    for parameter, value in unused.items():
        if _is_for_hccl(value):
            warn_user(f"{caller.function}: {parameter} is for HCCL, and changes nothing here")
        elif value is not None:
            raise caller.explain(UnsupportedError(f"{parameter} means nothing to this engine\nLeave it out."))


def _is_for_hccl(options: Any) -> bool:
    """Tell whether *options* are MindSpore's, with what they have for HCCL alone: every other backend is to pass over that."""
    kind = type(options)
    return (kind.__module__, kind.__name__) == ("mindspore._c_expression", "GroupOptions") and not options.use_async
