"""Initialising the world and making groups, at the signatures of paddle 2."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from shim.errors import StateError
from shim.frontends._paddle.errors import GroupMissingError, paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.world.options import default_timeout, enter, new_subgroup

_INIT = paddle_function("init_parallel_env")
_NEW_GROUP = paddle_function("new_group", errors={StateError: GroupMissingError})


def init_parallel_env() -> Group:
    """Make this process a rank of the world that the launcher's environment describes, and return the world's group.

    Deviates: a lone process is a world of one and gets its group; paddle warns, does nothing and returns None.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/init_parallel_env_en.html
    """
    return enter(_INIT)


def new_group(
    ranks: Sequence[int] | None = None, backend: str | None = None, timeout: timedelta = default_timeout
) -> Group:
    """Make a group of the world ranks *ranks* (None: all) in rising order; its members wait for each other, others do not.

    Raises: AssertionError before initialisation; ValueError for ranks that are not in the world or occur twice.
    Deviates: *timeout*, a timedelta that paddle ignores, is the group's; a group of one rank works, an empty one does not; *backend*
    is only a name.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/new_group_en.html
    """
    return new_subgroup(_NEW_GROUP, ranks, backend, timeout)
