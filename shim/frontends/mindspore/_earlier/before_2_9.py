"""What was otherwise before MindSpore 2.9."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.frontends._releases import earlier_form_of
from shim.frontends.mindspore._groups.stores import TCPStore
from shim.frontends.mindspore.mint.distributed import _process_groups


@earlier_form_of(_process_groups.init_process_group)
def init_process_group(
    backend: str = "hccl",
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: TCPStore | None = None,
    pg_options: Any = None,
    device_id: int | None = None,
) -> None:
    return _process_groups.init_process_group(
        backend, init_method, timeout, world_size, rank, store, "", pg_options, device_id
    )
