"""Sending and receiving, the same in every version of paddle."""

from __future__ import annotations

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.messages import receive_from, send_to
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.tasks import Task

__all__ = ["irecv", "isend", "recv", "send"]

_SEND = paddle_function("send", input="tensor", peer="dst")
_RECV = paddle_function("recv", output="tensor", peer="src")
_ISEND = paddle_function("isend", input="tensor", peer="dst")
_IRECV = paddle_function("irecv", output="tensor", peer="src")


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Send *tensor* to the world's rank *dst*, which receives it.

    Raises: ValueError for the caller's own rank, or one outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/send_en.html
    """
    return send_to(_SEND, tensor, dst, group, sync_op)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Receive into *tensor* what the world's rank *src* sends.

    Raises: ValueError for the caller's own rank, or one outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/recv_en.html
    """
    return receive_from(_RECV, tensor, src, group, sync_op)


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> Task | None:
    """Begin to send *tensor* to the world's rank *dst*; it must not change before the task has ended.

    Raises: ValueError for the caller's own rank, or one outside the group.
    Deviates: returns at once; paddle on gloo waits until the tensor is received.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/isend_en.html
    """
    return send_to(_ISEND, tensor, dst, group, False)


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Task | None:
    """Begin to receive into *tensor* what the world's rank *src* sends; it is there when the task has ended.

    Raises: ValueError for the caller's own rank, one outside the group, and None, which paddle has as default and refuses.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/irecv_en.html
    """
    return receive_from(_IRECV, tensor, src, group, False)
