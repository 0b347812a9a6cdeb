"""``mindspore.mint.distributed``: sending and receiving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place import batches, point_to_point

_SEND = Caller("mindspore.mint.distributed.send", input="tensor", peer="dst")
_RECV = Caller("mindspore.mint.distributed.recv", output="tensor", peer="src")
_ISEND = Caller("mindspore.mint.distributed.isend", input="tensor", peer="dst")
_IRECV = Caller("mindspore.mint.distributed.irecv", output="tensor", peer="src")
_P2P_OP = Caller("mindspore.mint.distributed.P2POp")
_BATCH_ISEND_IRECV = Caller(
    "mindspore.mint.distributed.batch_isend_irecv", input="tensor", output="tensor", peer="P2POp.peer"
)


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send *tensor* to the world's rank *dst*, which receives as many elements under the same *tag*.

    Raises: TypeError if *tensor* is no tensor, *dst* or *tag* no int or *group* no str; ValueError for the calling rank.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.send.html
    """
    return point_to_point.send(_SEND, tensor, dst, group, tag)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive *tensor* from the world's rank *src*, which sent as many elements under the same *tag*, and return 0.

    Raises: TypeError if *tensor* is no tensor, *src* or *tag* no int or *group* no str; ValueError if *src* is not in *group*.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.recv.html
    """
    return point_to_point.recv(_RECV, tensor, src, group, tag)


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Send *tensor* to the world's rank *dst*, which receives as many elements, in the background, and return the handle to wait for.

    Raises: TypeError if *tensor* is no tensor, *dst* or *tag* no int or *group* no str; ValueError for the calling rank.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.isend.html
    """
    return point_to_point.isend(_ISEND, tensor, dst, group, tag)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Receive *tensor* from the world's rank *src*, which sends as many elements, in the background, and return the handle to wait for.

    Raises: TypeError if *tensor* is no tensor, *src* or *tag* no int or *group* no str; ValueError if *src* is not in *group*.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.irecv.html
    """
    return point_to_point.irecv(_IRECV, tensor, src, group, tag)


class P2POp(batches.PointToPoint):
    """One part of a batch: send *tensor* to the world's rank *peer* of *group*, or receive it, as *op* says.

    Raises: TypeError if *op* is not isend or irecv, by name or itself, *tensor* no tensor or *peer* no int;
    NotImplementedError for another *tag* than 0.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.P2POp.html
    """

    def __init__(
        self, op: str | Callable[..., Any], tensor: Tensor, peer: int, group: str | None = None, tag: int = 0
    ) -> None:
        super().__init__(_P2P_OP, (isend, irecv), op, tensor, peer, group, tag)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[CommHandle]:
    """Begin all sends and receives of *p2p_op_list* together, and return a list of one handle for all of them.

    Raises: TypeError if the list is empty, holds anything but P2POps, or has more than one group.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/mint/mindspore.mint.distributed.batch_isend_irecv.html
    """
    return batches.begin(_BATCH_ISEND_IRECV, p2p_op_list, P2POp)
