"""``mindspore.ops.communication``: sending and receiving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends.mindspore._functional import functional
from shim.frontends.mindspore._functional.in_place_switch import either, in_place_only
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place import batches, point_to_point
from shim.frontends.mindspore.mint.distributed._point_to_point import isend

_RECV = Caller("mindspore.ops.communication.recv", output="tensor", peer="src")
_IRECV = Caller("mindspore.ops.communication.irecv", output="tensor", peer="src")
_P2P_OP = Caller("mindspore.ops.communication.P2POp")
_BATCH_ISEND_IRECV = Caller(
    "mindspore.ops.communication.batch_isend_irecv", input="tensor", output="tensor", peer="P2POp.peer"
)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    """Receive *tensor* from the world's rank *src*, which sent as many elements under the same *tag*, and return 0.

    Not in place: the received tensor is returned.
    Raises: TypeError if *tensor* is no tensor, *src* or *tag* no int or *group* no str; ValueError if *src* is not in *group*.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.recv.html
    """
    return either(
        _RECV,
        lambda: point_to_point.recv(_RECV, tensor, src, group, tag),
        lambda: functional.recv(_RECV, tensor, src, group, tag),
    )


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    """Receive *tensor* from the world's rank *src*, which sends as many elements, in the background, and return the handle to wait for.

    Not in place: the received tensor is returned, with the handle.
    Raises: TypeError if *tensor* is no tensor, *src* or *tag* no int or *group* no str; ValueError if *src* is not in *group*.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.irecv.html
    """
    return either(
        _IRECV,
        lambda: point_to_point.irecv(_IRECV, tensor, src, group, tag),
        lambda: functional.irecv(_IRECV, tensor, src, group, tag),
    )


class P2POp(batches.PointToPoint):
    """One part of a batch: send *tensor* to the world's rank *peer* of *group*, or receive it, as *op* says.

    Raises: TypeError if *op* is not isend or irecv, by name or itself, *tensor* no tensor or *peer* no int;
    NotImplementedError for another *tag* than 0.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.P2POp.html
    """

    def __init__(
        self, op: str | Callable[..., Any], tensor: Tensor, peer: int, group: str | None = None, tag: int = 0
    ) -> None:
        super().__init__(_P2P_OP, (isend, irecv), op, tensor, peer, group, tag)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[CommHandle]:
    """Begin all sends and receives of *p2p_op_list* together, and return a list of one handle for all of them.

    Raises: TypeError if the list is empty, holds anything but P2POps, or has more than one group.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/stable/api_python/ops/mindspore.ops.communication.batch_isend_irecv.html
    """
    return batches.begin(in_place_only(_BATCH_ISEND_IRECV), p2p_op_list, P2POp)
