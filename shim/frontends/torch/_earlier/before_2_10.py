"""What was otherwise before torch 2.10."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.frontends._releases import earlier_form_of
from shim.frontends.torch._earlier import before_2_14
from shim.frontends.torch.distributed import collective_utils

collective_utils.all_gather_object_enforce_type.__defaults__ = (lambda x, y: type(x) == type(y),)  # noqa: E721


@earlier_form_of(before_2_14.init_process_group)
def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    return before_2_14.init_process_group(
        backend, init_method, timeout, world_size, rank, store, group_name, pg_options, device_id
    )
