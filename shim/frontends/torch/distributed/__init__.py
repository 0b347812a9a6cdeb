"""``torch.distributed`` over this project's engine: ``import shim.frontends.torch.distributed as dist``.

See: https://docs.pytorch.org/docs/2.13/distributed.html
"""

from __future__ import annotations

from shim.frontends.torch.distributed import (
    distributed_c10d,
)
from shim.frontends.torch.distributed._availability import (
    get_backend_config,
    get_debug_level,
    get_default_backend_for_device,
    get_node_local_rank,
    get_pg_count,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    set_debug_level,
    set_debug_level_from_env,
)
from shim.frontends.torch.distributed._backend import (
    Backend,
    BackendConfig,
)
from shim.frontends.torch.distributed._batches import (
    P2POp,
    batch_isend_irecv,
)
from shim.frontends.torch.distributed._call_options import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from shim.frontends.torch.distributed._coalescing import (
    _coalescing_manager,
    _CoalescingManager,
    _time_estimator,
)
from shim.frontends.torch.distributed._collectives import (
    _all_gather_base,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    scatter,
)
from shim.frontends.torch.distributed._debugging import (
    GroupName,
    breakpoint,
    record_comm,
)
from shim.frontends.torch.distributed._dividing import (
    new_subgroups,
    new_subgroups_by_enumeration,
    shrink_group,
    split_group,
)
from shim.frontends.torch.distributed._environment import (
    DebugLevel,
)
from shim.frontends.torch.distributed._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from shim.frontends.torch.distributed._gloo import (
    ProcessGroupGloo,
)
from shim.frontends.torch.distributed._groups import (
    GroupMember,
    ProcessGroup,
    group,
)
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
from shim.frontends.torch.distributed._object_collectives import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from shim.frontends.torch.distributed._point_to_point import (
    irecv,
    isend,
    recv,
    send,
)
from shim.frontends.torch.distributed._reduce_op import (
    ReduceOp,
    _make_nccl_premul_sum,
    reduce_op,
    supports_complex,
)
from shim.frontends.torch.distributed._reductions import (
    _reduce_scatter_base,
    all_reduce,
    all_reduce_coalesced,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)
from shim.frontends.torch.distributed._rendezvous import (
    register_rendezvous_handler,
    rendezvous,
)
from shim.frontends.torch.distributed._stores import (
    FileStore,
    HashStore,
    PrefixStore,
    Store,
    TCPStore,
)
from shim.frontends.torch.distributed._work import (
    Work,
)

__all__ = [
    "AllToAllOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GatherOptions",
    "GroupMember",
    "GroupName",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "QueueEmptyError",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "Work",
    "_CoalescingManager",
    "_all_gather_base",
    "_coalescing_manager",
    "_make_nccl_premul_sum",
    "_reduce_scatter_base",
    "_time_estimator",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "breakpoint",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "distributed_c10d",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "record_comm",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "split_group",
    "supports_complex",
]
