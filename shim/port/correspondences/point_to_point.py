"""Messages between two ranks."""

from __future__ import annotations

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
