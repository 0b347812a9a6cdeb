"""What ``mindspore.ops`` has of ``ops.communication``: all but ``gather`` and ``scatter``, which are operators on tensors there."""

from __future__ import annotations

from shim.frontends.mindspore._groups.stores import TCPStore
from shim.frontends.mindspore.mint.distributed._collectives import barrier
from shim.frontends.mindspore.mint.distributed._point_to_point import isend, send
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
from shim.frontends.mindspore.ops.communication._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_into_tensor_uneven,
    all_reduce,
    all_to_all,
    all_to_all_single,
    all_to_all_v_c,
    reduce_scatter,
    reduce_scatter_tensor,
    reduce_scatter_tensor_uneven,
)
from shim.frontends.mindspore.ops.communication._forms import (
    set_comm_ops_inplace,
)
from shim.frontends.mindspore.ops.communication._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from shim.frontends.mindspore.ops.communication._point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    recv,
)
from shim.frontends.mindspore.ops.communication._rooted import (
    broadcast,
    gather_into_tensor,
    reduce,
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
    "all_to_all_v_c",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather_into_tensor",
    "gather_object",
    "get_backend",
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
    "scatter_object_list",
    "scatter_tensor",
    "send",
    "send_object_list",
    "set_comm_ops_inplace",
]
