"""``torch.distributed`` over this project's engine: ``import shim.frontends.torch.distributed as dist``.

See: https://docs.pytorch.org/docs/2.13/distributed.html
"""

from __future__ import annotations

from shim.frontends.torch.distributed import distributed_c10d
from shim.frontends.torch.distributed._backend import Backend
from shim.frontends.torch.distributed._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_gather_single,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from shim.frontends.torch.distributed._groups import GroupMember, ProcessGroup, group
from shim.frontends.torch.distributed._lifecycle import (
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from shim.frontends.torch.distributed._point_to_point import recv, send
from shim.frontends.torch.distributed._reduce_op import ReduceOp, _make_nccl_premul_sum
from shim.frontends.torch.distributed._work import Work

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "_make_nccl_premul_sum",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "default_pg_timeout",
    "destroy_process_group",
    "distributed_c10d",
    "gather",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_initialized",
    "new_group",
    "recv",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]
