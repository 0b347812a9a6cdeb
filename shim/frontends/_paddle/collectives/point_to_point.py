"""Sending and receiving, the same in every version of paddle."""

from __future__ import annotations

from typing import Any

from shim.core import calls
from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.core.work import Work
from shim.frontends._paddle.arguments import peer_of
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.graphs import SYMBOLIC, recorded, refuse_symbolic
from shim.frontends._paddle.groups.group_views import Group, group_of
from shim.frontends._paddle.tasks import Task, finish

_SEND = paddle_function("send", input="tensor", peer="dst")
_RECV = paddle_function("recv", output="tensor", peer="src")
_ISEND = paddle_function("isend", input="tensor", peer="dst")
_IRECV = paddle_function("irecv", output="tensor", peer="src")


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Send *tensor* to the world's rank *dst*, which receives as many elements.

    Raises: ValueError for the caller's own rank, or one outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/send_en.html
    """
    return send_to(_SEND, tensor, dst, group, sync_op)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Receive into *tensor* as many elements as it has from the world's rank *src*.

    Raises: ValueError for the caller's own rank, or one outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/recv_en.html
    """
    return receive_from(_RECV, tensor, src, group, sync_op)


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> Task | None:
    """Begin to send *tensor* to the world's rank *dst*, which receives as many elements; it must not change before the task has ended.

    Raises: ValueError for the caller's own rank, or one outside the group.
    Deviates: returns at once; paddle on gloo waits until the tensor is received.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/isend_en.html
    """
    return send_to(_ISEND, tensor, dst, group, False)


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Task | None:
    """Begin to receive into *tensor* as many elements as it has from the world's rank *src*; they are there when the task has ended.

    Raises: ValueError for the caller's own rank, one outside the group, and None, which paddle has as default and refuses.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/irecv_en.html
    """
    return receive_from(_IRECV, tensor, src, group, False)


def prepared_send(caller: Caller, tensor: Any, dst: Any, group: Any) -> Work:
    """Prepare to send *tensor* to the world's rank *dst*."""
    return calls.send(caller, group_of(caller, group), tensor, peer_of(caller, group, dst))


def prepared_receive(caller: Caller, tensor: Any, src: Any, group: Any) -> Work:
    """Prepare to receive into *tensor* what the world's rank *src* sends."""
    return calls.receive(caller, group_of(caller, group), tensor, peer_of(caller, group, src))


def send_to(caller: Caller, tensor: Any, dst: Any, group: Any, sync_op: bool) -> Task | None:
    """Send *tensor* to the world's rank *dst*."""
    if type(tensor) in SYMBOLIC:
        refuse_symbolic(caller, [] if sync_op else [tensor])
        return recorded(send_to, caller, group, None, tensor, dst)
    members = group_of(caller, group)
    return finish(calls.send(caller, members, tensor, peer_of(caller, group, dst), 0, bool(sync_op)), sync_op, group)


def receive_from(caller: Caller, tensor: Any, src: Any, group: Any, sync_op: bool) -> Task | None:
    """Receive into *tensor* what the world's rank *src* sends."""
    if type(tensor) in SYMBOLIC:
        refuse_symbolic(caller, [] if sync_op else [tensor])
        return recorded(receive_from, caller, group, tensor, tensor, src)
    members = group_of(caller, group)
    return finish(calls.receive(caller, members, tensor, peer_of(caller, group, src), 0, bool(sync_op)), sync_op, group)
