"""What only MindSpore has."""

from __future__ import annotations

from collections.abc import Mapping

# By module. A declaration is its names; then, indented, the reason, the advice, and the APIs that have nothing, if these are not all others.
OF_MINDSPORE: Mapping[str, str] = {
    "mindspore": """
set_auto_parallel_context
    it sets how MindSpore's compiler divides a model
    Leave it out. With gradients_mean=True, divide the gradients that you reduce by the number of ranks.
""",
    "mindspore.mint.distributed": """
TCPStore
    its ranks do not share a store of this class
    Share small values with broadcast_object_list.
gather_into_tensor
    it gathers into a list
    Make a list of parts of the tensor, such as list(output.chunk(size)), and call gather with it.
scatter_tensor
    it scatters a list
    Make a list of parts of the tensor, such as list(output.chunk(size)), and call scatter with it.
all_gather_into_tensor_uneven
    the parts of one output are of one size
    Call all_gather with a list of parts of the output, one of each size.
reduce_scatter_tensor_uneven
    the parts of one input are of one size
    Call reduce_scatter with a list of parts of the input, one of each size.
all_to_all_v_c
    it has no call that takes the counts of all ranks
    Take this rank's row and column of the matrix as the input's and the output's splits.
set_comm_ops_inplace
    its functions always write into their outputs
    Leave it out, if the program does not set it to False.
gather_object
    it has no gather for objects
    Call all_gather_object, and use the list on the root alone.
    paddle_2 paddle_3
send_object_list recv_object_list
    it has no messages of objects
    Use broadcast_object_list in a group of the two ranks, or send tensors.
    paddle_2
""",
    "mindspore.communication": """
create_group
    a group is an object that new_group returns, and not a name that the program chooses
    Write group = new_group(ranks) on every rank, not on the members alone, and pass group where the name is passed.
GlobalComm
    MindSpore keeps its state in it
    Ask get_backend and is_initialized instead.
get_comm_name
    groups have no such names
    Leave it out: it names the group for MindSpore's own kernels.
get_local_rank
    its rank on the host is not asked by a function
    Read LOCAL_RANK or PADDLE_LOCAL_RANK from os.environ. ParallelEnv().local_rank is the rank in the world.
    paddle_2 paddle_3
get_local_rank_size
    the number of ranks on the host is not asked by a function
    Read LOCAL_WORLD_SIZE from os.environ, if the launcher sets it.
""",
    "mindspore.communication.comm_func": """
CommHandle
    the handle of a call in the background is of no public class
    Leave the class out. Call nothing of the handle but wait().
    paddle_2 paddle_3
P2POp batch_isend_irecv
    a batch fills its tensors and returns handles, and does not return tensors
    Make the tensors to receive first, give them to P2POp, and wait for all handles.
all_to_all_with_output_shape
    the outputs are made by the caller
    Make a list of outputs of these shapes, and call the function that works on two lists.
gather_into_tensor
    it gathers into a list
    Make a list of outputs on the root, and call gather.
scatter_tensor
    it scatters a list
    Make a list of parts on the root, and call scatter.
all_to_all_v_c
    it has no call that takes the counts of all ranks
    Take this rank's row and column of the matrix as the input's and the output's splits.
""",
    "mindspore.ops": """
ReduceOp.AVG
    it has no op for the mean
    Reduce by SUM, and divide by the size.
    paddle_2
CollectiveGather CollectiveScatter
    it has functions and no primitives, and they fill an output
    Make a list of parts where the primitive is called, and call gather or scatter.
AllGatherV ReduceScatterV
    the parts of one tensor are of one size
    Call all_gather or reduce_scatter with a list of parts, one of each size.
AlltoAll AlltoAllV AlltoAllVC
    it has functions and no primitives, and they exchange rows
    Exchange rows with the function, and move other dimensions to the front before it and back after it.
Send Receive
    it has functions and no primitives, and messages have no group of their own for the way back
    Call send and recv where the primitives are called, in the same order on both ranks.
BatchISendIRecv
    it has functions and no primitives
    Make the tensors to receive first, and call batch_isend_irecv with a P2POp for each message.
NeighborExchange NeighborExchangeV2
    it has no exchange with neighbours alone
    Call batch_isend_irecv with a P2POp for each neighbour.
_AllSwap _GetTensorSlice _HostAllGather _HostReduceScatter _MicroStepAllGather _MiniStepAllGather _MirrorMicroStepOperator
_MirrorMiniStepOperator _MirrorOperator _VirtualAccuGrad _VirtualAdd _VirtualAssignAdd _VirtualAssignKvCache _VirtualDataset
_VirtualDiv _VirtualOutput _VirtualPipelineEnd
    MindSpore's compiler puts it into graphs of automatic parallelism
    Keep this file on MindSpore's frontend, which works beside the ported code.
""",
}
