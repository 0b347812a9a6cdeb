"""What the options of initialisation and of new groups mean here, and which of them cannot be honoured."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from operator import index
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.core.job import rendezvous
from shim.core.job.job import Job
from shim.errors import ArgumentError, ShimError, UnsupportedError
from shim.frontends._paddle import tasks
from shim.frontends._paddle.errors import ArgumentAssertionError, ArgumentTypeError
from shim.frontends._paddle.graphs import meet_paddle
from shim.frontends._paddle.groups import group_views as views
from shim.frontends._paddle.world.process_group import ProcessGroup

default_timeout = timedelta(seconds=groups.DEFAULT_TIMEOUT)
BACKENDS = ("gloo", "nccl", "bkcl", "xccl", "flagcx")


def enter(caller: Caller, nccl_config: Any = None) -> views.Group:
    """Make this process a rank of the world that its environment describes, and return the world's group."""
    _refuse_option(caller, "nccl_config", nccl_config, None)
    meet_paddle()
    if views.is_entered():
        return views.member_of(caller, None)
    name = os.environ.get("PADDLE_DISTRI_BACKEND", "auto")
    backend = _usual_backend() if name == "auto" else _backend_of(caller, name)
    tasks.forget_all()  # of a world that was closed behind our back
    core = groups.enter_world(caller, views.FRONTEND, backend=backend, timeout=_seconds(caller))
    return views.open_world(core, ProcessGroup)


def _usual_backend() -> str:
    """Return what Paddle chooses: NCCL where its device is a GPU. Gloo carries tensors on others through host memory."""
    paddle = sys.modules.get("paddle")
    return "nccl" if paddle is not None and paddle.get_device().startswith("gpu") else "gloo"


def new_subgroup(
    caller: Caller,
    ranks: Sequence[int] | None,
    backend: str | None,
    timeout: timedelta,
    nccl_comm_init_option: int = 0,
    nccl_config: Any = None,
) -> views.Group:
    """Make the group of *ranks* in rising order, which its members do alone; it counts on a rank that refuses it too."""
    id = views.next_id()
    world = views.group_of(caller, None)
    try:
        members = list(world.ranks) if ranks is None else sorted(index(rank) for rank in ranks)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"ranks must be a list of integers, got {ranks!r}")) from None
    name = groups.next_name_of(members)
    _refuse_option(caller, "nccl_comm_init_option", nccl_comm_init_option, 0)
    _refuse_option(caller, "nccl_config", nccl_config, None)
    if not isinstance(timeout, timedelta):
        raise caller.explain(ArgumentTypeError(f"timeout must be a datetime.timedelta, got {timeout!r}"))
    if timeout <= timedelta(0):
        raise caller.explain(ArgumentError(f"timeout must be positive, got {timeout!r}"))
    if len(members) > world.size:
        raise caller.explain(
            ArgumentAssertionError(f"ranks must be at most {world.size}, the world's, got {len(members)}"), world
        )
    backend = world.backend if backend is None else _backend_of(caller, backend)
    return views.make_group(caller, name, members, backend, timeout.total_seconds(), id, ProcessGroup)


def rank_in(caller: Caller, group: Any) -> int:
    """Return the caller's rank in *group*; None is the world, which the environment describes before initialisation."""
    if group is None and not views.is_entered():
        return identity(caller).rank
    return views.member_of(caller, group).rank


def size_of(caller: Caller, group: Any) -> int:
    """Return the number of *group*'s ranks, -1 outside it; None is the world, as for ``rank_in``."""
    if group is None and not views.is_entered():
        return identity(caller).size
    return views.member_of(caller, group).world_size


def identity(caller: Caller) -> Job:
    """Return what the environment says of this process."""
    try:
        return rendezvous.locate()
    except ShimError as error:
        raise caller.explain(error) from None


def _seconds(caller: Caller) -> float:
    """Return the world's timeout: the milliseconds in PADDLE_PG_TIMEOUT, or the default."""
    text = os.environ.get("PADDLE_PG_TIMEOUT")
    if not text:
        return groups.DEFAULT_TIMEOUT
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise caller.explain(ArgumentError(f"PADDLE_PG_TIMEOUT must be a number of milliseconds, got {text}"))
    return int(text) / 1000


def nccl_config_of(caller: Caller, nccl_config: Any) -> None:
    """Return None, as paddle does without NCCL; where the backend is called so, *nccl_config* cannot be honoured."""
    if views.is_entered() and views.group_of(caller, None).backend == "nccl":
        _refuse_option(caller, "nccl_config", nccl_config, None)


def _refuse_option(caller: Caller, name: str, value: Any, default: Any) -> None:
    if value != default:
        raise caller.explain(
            UnsupportedError(
                f"{name} must be {default!r}: the paddle frontend's engine has no such option, got {value!r}"
            )
        )


def _backend_of(caller: Caller, backend: Any) -> str:
    if backend not in BACKENDS:
        raise caller.explain(ArgumentAssertionError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}"))
    return str(backend)
