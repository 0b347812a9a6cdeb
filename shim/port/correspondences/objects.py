"""Collectives of Python objects."""

from __future__ import annotations

OBJECTS = {
    "all_gather_object": (
        "torch.distributed.all_gather_object(objects, object, group)",
        "paddle.distributed.all_gather_object(objects, object, group)",
        "mindspore.mint.distributed.all_gather_object(objects, object, group)",
    ),
    "broadcast_object_list": (
        "torch.distributed.broadcast_object_list(objects, root, group, device, group_root)",
        "paddle.distributed.broadcast_object_list(objects, root, group)",
        "mindspore.mint.distributed.broadcast_object_list(objects, root, group, device)",
    ),
    "gather_object": (
        "torch.distributed.gather_object(object, objects, root=0, group, group_root)",
        "mindspore.mint.distributed.gather_object(object, objects, root, group)",
    ),
    "receive_objects": (
        "torch.distributed.recv_object_list(objects, peer=any, group, device, group_peer, -)",
        "paddle_3: paddle.distributed.recv_object_list(objects, peer, group, group_peer)",
        "mindspore.mint.distributed.recv_object_list(objects, peer, group, device)",
    ),
    "scatter_object_list": (
        "torch.distributed.scatter_object_list(objects, inputs, root=0, group, group_root)",
        "paddle.distributed.scatter_object_list(objects, inputs, root, group)",
        "mindspore.mint.distributed.scatter_object_list(objects, inputs, root, group)",
    ),
    "send_objects": (
        "torch.distributed.send_object_list(objects, peer, group, device, group_peer, -)",
        "paddle_3: paddle.distributed.send_object_list(objects, peer, group, group_peer)",
        "mindspore.mint.distributed.send_object_list(objects, peer, group, device)",
    ),
}
