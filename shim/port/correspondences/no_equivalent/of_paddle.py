"""What only Paddle has."""

from __future__ import annotations

from collections.abc import Mapping

# By module. A declaration is its names; then, indented, the reason, the advice, and the APIs that have nothing, if these are not all others.
OF_PADDLE: Mapping[str, str] = {
    "paddle.distributed": """
ParallelEnv
    it reads the variables of Paddle's launcher
    Ask get_rank and get_world_size, and read other variables of the launcher from os.environ.
    torch mindspore
get_group
    groups have no numbers there
    Keep the group in a variable where new_group makes it. Number 0 is the world: None.
    torch mindspore
gloo_barrier gloo_init_parallel_env gloo_release
    its ranks meet in one way
    Call the target's init function, its barrier and destroy_process_group.
    torch mindspore
launch
    it is Paddle's launcher
    Start the ranks with shim run or the target's launcher.
    torch mindspore
spawn
    torch.multiprocessing.spawn passes the rank to the function, and sets no variables
    Start the program with shim run, and have each rank call the function once.
    torch
spawn
    a program does not start its ranks there
    Start the program with shim run or msrun, and have each rank call the function once.
    mindspore
split
    it makes a layer and divides it over the ranks
    Write the layer with the target's own, and reduce or gather what it computes.
    torch mindspore
wait
    a tensor is not waited for there
    Call wait() of the handle that the call in the background returned.
    torch mindspore
restart_process_group shutdown_process_group
    a group cannot be stopped and started again there
    Call destroy_process_group, and make a new group.
    torch mindspore paddle_2
create_nccl_config
    it sets options of NCCL
    Set NCCL's own variables in the environment.
    torch mindspore paddle_2
is_avg_reduce_op_supported
    it asks which NCCL there is
    Leave the test out.
    torch mindspore paddle_2
_coalescing_manager
    it has Paddle collect several calls into one
    Make the calls one by one, and wait for all handles.
    torch mindspore paddle_2
_with_batch_p2p_guard
    it has Paddle collect messages into one
    Use batch_isend_irecv.
    torch mindspore paddle_3
stream.reduce_scatter._reduce_scatter_base _get_global_group _get_or_throw_group_rank _is_global_group _warn_cur_rank_not_in_group
    it is internal to Paddle
    Use the public functions: get_rank, get_world_size, new_group.
    torch mindspore
send_object_list recv_object_list
    it has no messages of objects
    Use broadcast_object_list in a group of the two ranks, or send tensors.
    paddle_2
ReduceOp.AVG
    it has no op for the mean
    Reduce by SUM, and divide by the size.
    paddle_2
fleet sharding auto_parallel
    it is a part of Paddle's own parallel training
    Use what the target framework has for this; it needs groups of the framework's own.
    torch mindspore
rpc
    it calls functions on other ranks
    Send the data with collectives.
    torch mindspore
"""
}
