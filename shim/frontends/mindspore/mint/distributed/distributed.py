"""``mindspore.mint.distributed.distributed``: all of ``mint.distributed``, and what that does not export."""

from __future__ import annotations

from shim.core.callers import Caller
from shim.frontends.mindspore import _groups
from shim.frontends.mindspore._groups import GlobalComm
from shim.frontends.mindspore._stores import TCPStore
from shim.frontends.mindspore.mint.distributed._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_into_tensor_uneven,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    reduce_scatter,
    reduce_scatter_tensor,
    reduce_scatter_tensor_uneven,
)
from shim.frontends.mindspore.mint.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from shim.frontends.mindspore.mint.distributed._point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from shim.frontends.mindspore.mint.distributed._process_groups import (
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
from shim.frontends.mindspore.mint.distributed._rooted import (
    broadcast,
    gather,
    gather_into_tensor,
    reduce,
    scatter,
    scatter_tensor,
)

__all__ = [
    "P2POp",
    "TCPStore",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_into_tensor",
    "gather_object",
    "get_backend",
    "get_cache_group_rank",
    "get_cache_group_size",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter",
    "scatter_object_list",
    "scatter_tensor",
    "send",
    "send_object_list",
]

_GET_CACHE_GROUP_RANK = Caller("mindspore.mint.distributed.distributed.get_cache_group_rank")
_GET_CACHE_GROUP_SIZE = Caller("mindspore.mint.distributed.distributed.get_cache_group_size")


def get_cache_group_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's rank in *group*; before initialisation, RANK_ID of the environment or 0.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    Deviates: remembers nothing, so that it is right after groups have changed too.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_rank.html
    """
    return _groups.answer(_GET_CACHE_GROUP_RANK, group, lambda found: found.rank, "RANK_ID", 0)


def get_cache_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the number of ranks in *group*; before initialisation, RANK_SIZE of the environment or 1.

    Raises: TypeError if *group* is no str; RuntimeError if there is no such group.
    Deviates: remembers nothing, so that it is right after groups have changed too.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.get_world_size.html
    """
    return _groups.answer(_GET_CACHE_GROUP_SIZE, group, lambda found: found.size, "RANK_SIZE", 1)
