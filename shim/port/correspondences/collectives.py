"""Collectives of tensors: one row for each layout, with a form for each API. The first form of an API is the one that a port writes."""

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
