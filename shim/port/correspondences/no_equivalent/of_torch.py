"""What only torch has."""

from __future__ import annotations

from collections.abc import Mapping

# By module. A declaration is its names; then, indented, the reason, the advice, and the APIs that have nothing, if these are not all others.
OF_TORCH: Mapping[str, str] = {
    "torch.distributed": """
AllgatherOptions AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions
ReduceOptions ReduceScatterOptions ScatterOptions
    it holds arguments for the methods of a ProcessGroup
    Call the collective's function, and write the options as its arguments.
ProcessGroupGloo BackendConfig get_backend_config get_default_backend_for_device
    it shows torch's own engines
    Leave the choice to the target, or name the backend where the group is made.
is_backend_available is_gloo_available is_mpi_available is_nccl_available is_ucc_available is_xccl_available
    it asks for torch's own engines
    Leave the test out: the target chooses by the device.
Backend.FAKE Backend.MPI Backend.UCC Backend.XCCL Backend.register_backend Backend.undefined
    a backend is a plain string there, and these are torch's own
    Write the backend's name as a string.
Store TCPStore FileStore HashStore PrefixStore rendezvous register_rendezvous_handler _get_default_store _get_process_group_store
_store_based_barrier
    it is a part of how torch's ranks find each other
    Start the program with a launcher, and share small values with broadcast_object_list.
DistBackendError DistError DistNetworkError DistStoreError QueueEmptyError
    its errors have other classes
    Catch RuntimeError, of which torch's are too.
Work
    the handle of a call in the background is of no public class
    Leave the annotation out. Call nothing of the handle but wait().
    paddle_2 paddle_3
DebugLevel get_debug_level set_debug_level set_debug_level_from_env
    it sets what torch checks and prints
    Leave it out, or read the program's own variable.
breakpoint
    it stops one rank in the debugger while the others wait
    Call Python's breakpoint() on that rank, and barrier() on all of them after it.
new_subgroups new_subgroups_by_enumeration split_group
    it makes several groups at once
    Call new_group for each list of ranks, on every rank in the same order, and keep the group that has this rank.
shrink_group _abort_process_group
    a group with a failed rank cannot go on there
    Start the ranks again without the failed one.
all_gather_coalesced all_reduce_coalesced
    it takes a list of tensors for one call
    Call the collective for each tensor of the list, in the same order on every rank.
_coalescing_manager _CoalescingManager _CollOp _time_estimator
    it has torch collect several calls into one
    Make the calls one by one without it, with async_op=True where they may overlap, and wait for all handles.
record_comm
    it marks calls for torch's profiler
    Leave it out, and record with shim trace run instead.
get_node_local_rank
    its rank on the host is not asked by a function
    Read LOCAL_RANK or PADDLE_LOCAL_RANK from os.environ. ParallelEnv().local_rank is the rank in the world.
    paddle_2 paddle_3
is_torchelastic_launched
    it asks for torchrun
    Ask os.environ for a variable of the launcher that you use.
get_pg_count
    it counts torch's groups
    Count the groups where the program makes them.
GroupMember group
    it holds torch's own groups
    Write None for the world. A rank that is outside of a group finds out by the list of its ranks.
ReduceOp.BAND ReduceOp.BOR ReduceOp.BXOR
    it has no ops of bits
    Reduce another form: MAX and MIN of booleans are or and and; for numbers, gather them and combine them.
ReduceOp.PREMUL_SUM
    it has no op with a factor
    Multiply the tensor before a SUM.
ReduceOp.AVG
    it has no op for the mean
    Reduce by SUM, and divide by the size.
    paddle_2
supports_complex
    it tells which of torch's ops take complex numbers
    Leave the test out: SUM and AVG do, others do not.
gather_single gather_into_tensor
    it gathers into a list
    Make a list of parts of the tensor on the root, such as list(output.chunk(size)), and call gather with it.
set_timeout
    the timeout of a group stays what it was
    Give the timeout where the group is made, if the target takes one.
get_backend_impl
    it shows torch's own engines
    Leave it out, and call the functions for groups.
gather_object
    it has no gather for objects
    Call all_gather_object, and use the list on the root alone.
    paddle_2 paddle_3
send_object_list recv_object_list
    it has no messages of objects
    Use broadcast_object_list in a group of the two ranks, or send tensors.
    paddle_2
_canonicalize_group_rank _check_single_tensor _check_tensor_list _device_capability _ensure_all_tensors_same_dtype
_find_or_create_pg_by_ranks_and_tag _find_pg_by_ranks_and_tag _get_global_rank _get_group_size _get_group_size_by_name
_get_object_coll_device _get_pg_default_device _get_process_group_name _is_fp8 _new_group_with_tag _object_to_tensor
_rank_not_in_group _resolve_process_group _set_pg_timeout _tensor_to_object _World _IllegalWork
    it is internal to torch
    Use the public functions: get_rank, get_world_size, new_group, get_process_group_ranks.
nn
    the gradient goes through it as through any function of torch
    Write an autograd.Function whose forward and backward call collectives; or keep this file on torch's frontend.
_functional_collectives
    it returns tensors that wait when they are first used, and takes meshes as groups
    Copy the input, call the collective that works in place on the copy, and wait for its handle.
collective_utils
    it is a helper of torch's checkpoints
    Exchange results and exceptions with all_gather_object or broadcast_object_list.
fsdp _composable tensor _tensor device_mesh pipelining optim algorithms
    it is a part of torch's own parallel training
    Use what the target framework has for this; it needs groups of the framework's own.
checkpoint
    it writes files in torch's form
    Save what each rank has with the target's save.
rpc autograd
    it calls functions on other ranks
    Keep this file on torch's frontend, which works beside the ported code.
elastic launch launcher run
    it is torch's launcher
    Start the ranks with shim run or the target's launcher.
_symmetric_memory _symmetric_memory_ops
    it is memory that torch's engines share
    Send the data with collectives.
""",
    "torch.multiprocessing": """
spawn
    the ranks it starts find each other through arguments of torch's init_process_group
    Start the program with shim run or the target's launcher, and have each rank call the function once.
    mindspore
spawn
    paddle.distributed.spawn does not pass the rank to the function
    Call paddle.distributed.spawn with keywords, take the rank's parameter out, and ask get_rank in the function.
    paddle_2 paddle_3
""",
}
