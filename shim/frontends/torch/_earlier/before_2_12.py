"""What was otherwise before torch 2.12."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shim.frontends._releases import earlier_form_of
from shim.frontends.torch._calls.work import Work
from shim.frontends.torch._groups.process_group import GroupMember, ProcessGroup
from shim.frontends.torch.distributed import _collectives, _internals, _lifecycle


@earlier_form_of(_collectives.barrier)
def barrier(
    group: ProcessGroup | None = GroupMember.WORLD, async_op: bool = False, device_ids: Any = None
) -> Work | None:
    return _collectives.barrier(group, async_op, device_ids)


@earlier_form_of(_lifecycle.new_group)
def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup | Any:
    return _lifecycle.new_group(ranks, timeout, backend, pg_options, use_local_synchronization, group_desc, device_id)


@earlier_form_of(_internals._new_group_with_tag)
def _new_group_with_tag(
    ranks: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    backend_options: Any = None,
    pg_tag: str | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    return _internals._new_group_with_tag(
        ranks, timeout, backend, backend_options, pg_tag, use_local_synchronization, group_desc, device_id
    )
