"""The functions of the collective APIs: one row for each layout, with a form for each API. The first form of an API is the one that a port writes."""

from __future__ import annotations

COLLECTIVES = {
    "all_gather": (
        "torch.distributed.all_gather(outputs, input, group, background)",
        "paddle.distributed.all_gather(outputs, input, group, ~background)",
        "mindspore.mint.distributed.all_gather(outputs, input, group, background)",
        "paddle.distributed.stream.all_gather(outputs, input, group, ~background, -)",
    ),
    "all_gather_whole": (
        "torch.distributed.all_gather_single(output, input, group, background)",
        "paddle.distributed.stream.all_gather(output, input, group, ~background, -)",
        "mindspore.mint.distributed.all_gather_into_tensor(output, input, group, background)",
        "torch.distributed._all_gather_base(output, input, group, background)",
        "torch.distributed.all_gather_into_tensor(output, input, group, background)",
    ),
    "all_gather_uneven": (
        "mindspore.mint.distributed.all_gather_into_tensor_uneven(output, input, output_splits, group, background)",
    ),
    "all_reduce": (
        "torch.distributed.all_reduce(tensor, op, group, background)",
        "paddle.distributed.all_reduce(tensor, op, group, ~background)",
        "mindspore.mint.distributed.all_reduce(tensor, op, group, background)",
        "paddle.distributed.stream.all_reduce(tensor, op, group, ~background, -)",
    ),
    "all_to_all": (
        "torch.distributed.all_to_all(outputs, inputs, group, background)",
        "paddle_2: paddle.distributed.alltoall(inputs, outputs, group, ~background)",
        "paddle_3: paddle.distributed.alltoall(outputs, inputs, group, ~background)",
        "mindspore.mint.distributed.all_to_all(outputs, inputs, group, background)",
        "paddle.distributed.stream.alltoall(outputs, inputs, group, ~background, -)",
    ),
    "all_to_all_whole": (
        "torch.distributed.all_to_all_single(output, input, output_splits, input_splits, group, background)",
        "paddle_2: paddle.distributed.alltoall_single(input, output, input_splits, output_splits, group, ~background)",
        "paddle_3: paddle.distributed.alltoall_single(output, input, input_splits, output_splits, group, ~background)",
        "mindspore.mint.distributed.all_to_all_single(output, input, output_splits, input_splits, group, background)",
        "paddle.distributed.stream.alltoall_single(output, input, output_splits, input_splits, group, ~background, -)",
        "paddle.distributed.stream.alltoall(output, input, group, ~background, -)",
    ),
    "barrier": (
        "torch.distributed.barrier(group=None, background, device_ids, timeout)",
        "paddle.distributed.barrier(group)",
        "mindspore.mint.distributed.barrier(group, background, device_ids)",
        "mindspore.communication.comm_func.barrier(group=None)",
        "torch.distributed.monitored_barrier(group=None, timeout, names_missing_ranks)",
    ),
    "broadcast": (
        "torch.distributed.broadcast(tensor, root, group, background, group_root)",
        "paddle.distributed.broadcast(tensor, root, group, ~background)",
        "mindspore.mint.distributed.broadcast(tensor, root, group, background)",
        "paddle.distributed.stream.broadcast(tensor, root, group, ~background, -)",
    ),
    "gather": (
        "torch.distributed.gather(input, outputs, root=0, group, background, group_root)",
        "paddle.distributed.gather(input, outputs, root, group, ~background)",
        "mindspore.mint.distributed.gather(input, outputs, root, group, background)",
        "paddle.distributed.stream.gather(input, outputs, root, group, ~background, -)",
    ),
    "reduce": (
        "torch.distributed.reduce(tensor, root, op, group, background, group_root)",
        "paddle.distributed.reduce(tensor, root, op, group, ~background)",
        "mindspore.mint.distributed.reduce(tensor, root, op, group, background)",
        "paddle.distributed.stream.reduce(tensor, root, op, group, ~background, -)",
    ),
    "reduce_scatter": (
        "torch.distributed.reduce_scatter(output, inputs, op, group, background)",
        "paddle.distributed.reduce_scatter(output, inputs, op, group, ~background)",
        "mindspore.mint.distributed.reduce_scatter(output, inputs, op, group, background)",
        "paddle.distributed.stream.reduce_scatter(output, inputs, op, group, ~background, -)",
    ),
    "reduce_scatter_whole": (
        "torch.distributed.reduce_scatter_single(output, input, op, group, background)",
        "paddle.distributed.stream.reduce_scatter(output, input, op, group, ~background, -)",
        "mindspore.mint.distributed.reduce_scatter_tensor(output, input, op, group, background)",
        "torch.distributed._reduce_scatter_base(output, input, op, group, background)",
        "torch.distributed.reduce_scatter_tensor(output, input, op, group, background)",
        "paddle.distributed._reduce_scatter_base(output, input, op, group, ~background)",
    ),
    "reduce_scatter_uneven": (
        "mindspore.mint.distributed.reduce_scatter_tensor_uneven(output, input, input_splits, op, group, background)",
    ),
    "scatter": (
        "torch.distributed.scatter(output, inputs, root=0, group, background, group_root)",
        "paddle.distributed.scatter(output, inputs, root, group, ~background)",
        "mindspore.mint.distributed.scatter(output, inputs, root, group, background)",
        "paddle.distributed.stream.scatter(output, inputs, root, group, ~background, -)",
    ),
}


POINT_TO_POINT = {
    "batch": (
        "torch.distributed.batch_isend_irecv(operations)",
        "paddle.distributed.batch_isend_irecv(operations)",
        "mindspore.mint.distributed.batch_isend_irecv(operations)",
    ),
    "batched": (
        "torch.distributed.P2POp(function, tensor, peer, group, tag, group_peer)",
        "paddle.distributed.P2POp(function, tensor, peer, group)",
        "mindspore.mint.distributed.P2POp(function, tensor, peer, group, tag)",
    ),
    "receive": (
        "torch.distributed.recv(tensor, peer=any, group, tag, group_peer)",
        "paddle.distributed.recv(tensor, peer, group, ~background)",
        "mindspore.mint.distributed.recv(tensor, peer, group, tag)",
        "paddle.distributed.stream.recv(tensor, peer, group, ~background, -)",
    ),
    "receive_in_background": (
        "torch.distributed.irecv(tensor, peer=any, group, tag, group_peer)",
        "paddle.distributed.irecv(tensor, peer, group)",
        "mindspore.mint.distributed.irecv(tensor, peer, group, tag)",
    ),
    "send": (
        "torch.distributed.send(tensor, peer, group, tag, group_peer)",
        "paddle.distributed.send(tensor, peer, group, ~background)",
        "mindspore.mint.distributed.send(tensor, peer, group, tag)",
        "paddle.distributed.stream.send(tensor, peer, group, ~background, -)",
        "mindspore.communication.comm_func.send(tensor, peer, group=None, tag)",
    ),
    "send_in_background": (
        "torch.distributed.isend(tensor, peer, group, tag, group_peer)",
        "paddle.distributed.isend(tensor, peer, group)",
        "mindspore.mint.distributed.isend(tensor, peer, group, tag)",
        "mindspore.communication.comm_func.isend(tensor, peer, group=None, tag)",
    ),
}


OBJECTS = {
    "all_gather_object": (
        "torch.distributed.all_gather_object(objects, object, group, -)",
        "paddle.distributed.all_gather_object(objects, object, group)",
        "mindspore.mint.distributed.all_gather_object(objects, object, group)",
    ),
    "broadcast_object_list": (
        "torch.distributed.broadcast_object_list(objects, root, group, device, group_root, -)",
        "paddle.distributed.broadcast_object_list(objects, root, group)",
        "mindspore.mint.distributed.broadcast_object_list(objects, root, group, device)",
    ),
    "gather_object": (
        "torch.distributed.gather_object(object, objects, root=0, group, group_root, -)",
        "mindspore.mint.distributed.gather_object(object, objects, root, group)",
    ),
    "receive_objects": (
        "torch.distributed.recv_object_list(objects, peer=any, group, device, group_peer, -, -)",
        "paddle_3: paddle.distributed.recv_object_list(objects, peer, group, group_peer)",
        "mindspore.mint.distributed.recv_object_list(objects, peer, group, device)",
    ),
    "scatter_object_list": (
        "torch.distributed.scatter_object_list(objects, inputs, root=0, group, group_root, -)",
        "paddle.distributed.scatter_object_list(objects, inputs, root, group)",
        "mindspore.mint.distributed.scatter_object_list(objects, inputs, root, group)",
    ),
    "send_objects": (
        "torch.distributed.send_object_list(objects, peer, group, device, group_peer, -, -)",
        "paddle_3: paddle.distributed.send_object_list(objects, peer, group, group_peer)",
        "mindspore.mint.distributed.send_object_list(objects, peer, group, device)",
    ),
}


GROUPS = {
    "backend_of": (
        "torch.distributed.get_backend(group)",
        "paddle.distributed.get_backend(group)",
        "mindspore.mint.distributed.get_backend(group)",
    ),
    "destroy": (
        "torch.distributed.destroy_process_group(group)",
        "paddle.distributed.destroy_process_group(group)",
        "mindspore.mint.distributed.destroy_process_group(group)",
        "mindspore.communication.release()",
        "mindspore.communication.destroy_group(group)",
    ),
    "initialise": (
        "torch.distributed.init_process_group(backend, init_method, timeout, world_size, rank, store, description, options, device, -)",
        "paddle_2: paddle.distributed.init_parallel_env()",
        "paddle_3: paddle.distributed.init_parallel_env(-)",
        "mindspore.mint.distributed.init_process_group(backend, init_method, timeout, world_size, rank, store, description, options, device)",
        "mindspore.communication.init(backend)",
    ),
    "is_available": (
        "torch.distributed.is_available()",
        "paddle.distributed.is_available()",
        "mindspore.mint.distributed.is_available()",
    ),
    "is_initialized": (
        "torch.distributed.is_initialized()",
        "paddle.distributed.is_initialized()",
        "mindspore.mint.distributed.is_initialized()",
    ),
    "local_rank": (
        "torch.distributed.get_node_local_rank(fallback)",
        "mindspore.communication.get_local_rank(group=None)",
    ),
    "new_group": (
        "torch.distributed.new_group(ranks, timeout, backend, options, members_alone, description, device, -)",
        "paddle_2: paddle.distributed.new_group(ranks, backend, timeout)",
        "paddle_3: paddle.distributed.new_group(ranks, backend, timeout, -, -)",
        "mindspore.mint.distributed.new_group(ranks, timeout, backend, options, members_alone, description)",
    ),
    "rank": (
        "torch.distributed.get_rank(group)",
        "paddle.distributed.get_rank(group)",
        "mindspore.mint.distributed.get_rank(group)",
        "mindspore.communication.get_rank(group=None)",
        "mindspore.mint.distributed.get_cache_group_rank(group=None)",
    ),
    "size": (
        "torch.distributed.get_world_size(group)",
        "paddle.distributed.get_world_size(group)",
        "mindspore.mint.distributed.get_world_size(group)",
        "mindspore.communication.get_group_size(group=None)",
        "mindspore.mint.distributed.get_cache_group_size(group=None)",
    ),
    "rank_in_group": (
        "torch.distributed.get_group_rank(group, rank)",
        "mindspore.mint.distributed.get_group_rank(group, rank)",
        "mindspore.communication.get_group_rank_from_world_rank(rank, group)",
    ),
    "rank_in_world": (
        "torch.distributed.get_global_rank(group, group_rank)",
        "mindspore.mint.distributed.get_global_rank(group, group_rank)",
        "mindspore.communication.get_world_rank_from_group_rank(group, group_rank)",
    ),
    "ranks_of": (
        "torch.distributed.get_process_group_ranks(group)",
        "mindspore.mint.distributed.get_process_group_ranks(group)",
        "mindspore.communication.get_process_group_ranks(group=None)",
    ),
}
