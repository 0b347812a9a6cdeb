"""Shutting groups down for a while, which paddle has from 3.1 on."""

from __future__ import annotations

from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.groups.shutdowns import restart_groups, shut_down_groups

_SHUTDOWN = paddle_function("shutdown_process_group")
_RESTART = paddle_function("restart_process_group")


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
