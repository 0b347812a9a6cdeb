"""Initialising the world, making groups, and shutting them down for a while, at the signatures of paddle 3."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.errors import StateError
from shim.frontends._paddle.errors import GroupMissingError, paddle_function
from shim.frontends._paddle.groups.group_views import Group, restart_groups, shut_down_groups
from shim.frontends._paddle.world.options import default_timeout, enter, nccl_config_of, new_subgroup

_CREATE_NCCL_CONFIG = paddle_function("create_nccl_config")
_INIT = paddle_function("init_parallel_env")
_SHUTDOWN = paddle_function("shutdown_process_group")
_RESTART = paddle_function("restart_process_group")
_NEW_GROUP = paddle_function("new_group", errors={StateError: GroupMissingError})


def create_nccl_config(nccl_config: Any = None) -> None:
    """Return None for any *nccl_config*, as paddle does where the backend is not NCCL.

    Raises: UnsupportedError for a *nccl_config* where the world was initialised with the backend string nccl.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/create_nccl_config_en.html
    """
    return nccl_config_of(_CREATE_NCCL_CONFIG, nccl_config)


def init_parallel_env(nccl_config: Any = None) -> Group:
    """Make this process a rank of the world that the launcher's environment describes, and return the world's group.

    Raises: UnsupportedError for *nccl_config*.
    Deviates: a lone process is a world of one and gets its group; paddle warns, does nothing and returns None.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/init_parallel_env_en.html
    """
    return enter(_INIT, nccl_config)


def new_group(
    ranks: Sequence[int] | None = None,
    backend: str | None = None,
    timeout: timedelta = default_timeout,
    nccl_comm_init_option: int = 0,
    nccl_config: Any = None,
) -> Group:
    """Make a group of the world ranks *ranks* (None: all) in rising order; its members wait for each other, others do not.

    Raises: AssertionError before initialisation; ValueError for ranks that are not in the world or occur twice.
    Deviates: *timeout*, a timedelta that paddle ignores, is the group's; a group of one rank works, an empty one does not; *backend*
    is only a name; *nccl_comm_init_option* and *nccl_config* raise UnsupportedError.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/new_group_en.html
    """
    return new_subgroup(_NEW_GROUP, ranks, backend, timeout, nccl_comm_init_option, nccl_config)


def shutdown_process_group(group: Group | None = None) -> None:
    """Let go of what *group* holds in memory, until ``restart_process_group``; without one, of all but the world.

    Raises: UnsupportedError for the world's group; RuntimeError before initialisation.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/shutdown_process_group_en.html
    """
    return shut_down_groups(_SHUTDOWN, group)


def restart_process_group(group: Group | None = None) -> None:
    """Make *group* usable again after it was shut down, as every rank of it calls; without one, all that were.

    Raises: RuntimeError before initialisation.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/restart_process_group_en.html
    """
    return restart_groups(_RESTART, group)
