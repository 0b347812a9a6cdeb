"""Sending and receiving, the same in every version of paddle."""

from __future__ import annotations

from shim.core import calls
from shim.core.engines.base import Tensor
from shim.frontends._paddle.arguments import peer_of
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups import Group, group_of
from shim.frontends._paddle.tasks import Task, finish

__all__ = ["recv", "send"]

_SEND = paddle_function("send", input="tensor", peer="dst")
_RECV = paddle_function("recv", output="tensor", peer="src")


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Send *tensor* to the world's rank *dst*, which receives it.

    Raises: ValueError for the caller's own rank, or one outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/send_en.html
    """
    return finish(calls.send(_SEND, group_of(_SEND, group), tensor, peer_of(_SEND, group, dst)), sync_op, group)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Receive into *tensor* what the world's rank *src* sends.

    Raises: ValueError for the caller's own rank, or one outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/recv_en.html
    """
    return finish(calls.receive(_RECV, group_of(_RECV, group), tensor, peer_of(_RECV, group, src)), sync_op, group)
