"""What was otherwise before paddle 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.world.options import default_timeout
from shim.frontends._releases import earlier_form_of
from shim.frontends.paddle_3.distributed import _groups


@earlier_form_of(_groups.init_parallel_env)
def init_parallel_env() -> Group:
    return _groups.init_parallel_env()


@earlier_form_of(_groups.new_group)
def new_group(
    ranks: Sequence[int] | None = None,
    backend: str | None = None,
    timeout: timedelta = default_timeout,
    nccl_comm_init_option: int = 0,
) -> Group:
    return _groups.new_group(ranks, backend, timeout, nccl_comm_init_option)
