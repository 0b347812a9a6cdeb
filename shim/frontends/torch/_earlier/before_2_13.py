"""What was otherwise before torch 2.13."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shim.frontends._releases import earlier_form_of
from shim.frontends.torch._groups.process_group import ProcessGroup
from shim.frontends.torch.distributed import _subgroups


@earlier_form_of(_subgroups.split_group)
def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> ProcessGroup | None:
    return _subgroups.split_group(parent_pg, split_ranks, timeout, pg_options, group_desc)
