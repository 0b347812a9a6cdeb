"""The functions of ``paddle.distributed.stream`` without a reduce op, the same in every version of paddle.

``use_calc_stream`` is a rule about ``sync_op``. Host tensors have no stream. A synchronous call with tensors on a device goes on
the current stream, which is Paddle's calculation stream, whether *use_calc_stream* says so or not; one that is started goes beside it.
The output comes first in alltoall and alltoall_single, and the output's split sizes before the input's, in paddle 2 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shim.core.engines.base import Tensor
from shim.errors import NotMemberError
from shim.frontends._paddle.arguments import stream_point_sync, stream_sync
from shim.frontends._paddle.collectives.bodies import (
    broadcast_from,
    exchange,
    exchange_single,
    gather_all,
    gather_at,
    scatter_from,
)
from shim.frontends._paddle.collectives.point_to_point import receive_from, send_to
from shim.frontends._paddle.errors import OutsiderError, stream_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.tasks import Task

__all__ = [
    "all_gather",
    "alltoall",
    "alltoall_single",
    "broadcast",
    "gather",
    "recv",
    "scatter",
    "send",
]

_ALL_GATHER = stream_function(
    "all_gather", errors={NotMemberError: OutsiderError}, output="tensor_or_tensor_list", input="tensor"
)
_ALLTOALL = stream_function("alltoall", output="out_tensor_or_tensor_list", input="in_tensor_or_tensor_list")
_ALLTOALL_SINGLE = stream_function(
    "alltoall_single",
    output="out_tensor",
    input="in_tensor",
    output_splits="out_split_sizes",
    input_splits="in_split_sizes",
)
_BROADCAST = stream_function("broadcast", output="tensor", input="tensor", root="src")
_GATHER = stream_function("gather", output="gather_list", input="tensor", root="dst")
_RECV = stream_function("recv", output="tensor", peer="src")
_SCATTER = stream_function("scatter", output="tensor", input="tensor_or_tensor_list", root="src")
_SEND = stream_function("send", input="tensor", peer="dst")


def all_gather(
    tensor_or_tensor_list: list[Any] | Tensor,
    tensor: Tensor,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Copy every rank's *tensor* into its place in *tensor_or_tensor_list*, a tensor of its shape for each rank.

    An empty list is filled. One tensor will do for the list: of shape (n * m, ...) where n ranks have (m, ...).
    Raises: RuntimeError outside *group*, and for *use_calc_stream* without *sync_op*; ValueError for a wrong length,
    size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/all_gather_en.html
    """
    return gather_all(
        _ALL_GATHER, tensor_or_tensor_list, tensor, *stream_sync(_ALL_GATHER, group, sync_op, use_calc_stream)
    )


def alltoall(
    out_tensor_or_tensor_list: list[Any] | Tensor,
    in_tensor_or_tensor_list: Sequence[Tensor] | Tensor,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Send tensor *j* of *in_tensor_or_tensor_list* to rank *j*, into this rank's place, of the same shape, in its *out_tensor_or_tensor_list*.

    An empty output list is filled; two tensors in place of the lists, both of shape (n * m, ...), are cut for the n ranks.
    Raises: RuntimeError when one is missing, empty or of another kind, and for *use_calc_stream* without *sync_op*;
    ValueError for a wrong length, size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/alltoall_en.html
    """
    return exchange(
        _ALLTOALL,
        out_tensor_or_tensor_list,
        in_tensor_or_tensor_list,
        *stream_sync(_ALLTOALL, group, sync_op, use_calc_stream),
    )


def alltoall_single(
    out_tensor: Tensor,
    in_tensor: Tensor,
    out_split_sizes: Sequence[int] | None = None,
    in_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Cut *in_tensor* along dimension 0 into a part for each rank and put the parts received in *out_tensor*.

    *out_split_sizes* and *in_split_sizes* are the rows of each rank's part; None means equal parts.
    Raises: ValueError for sizes that do not add up to the rows; RuntimeError for *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/alltoall_single_en.html
    """
    return exchange_single(
        _ALLTOALL_SINGLE,
        out_tensor,
        in_tensor,
        out_split_sizes,
        in_split_sizes,
        *stream_sync(_ALLTOALL_SINGLE, group, sync_op, use_calc_stream),
    )


def broadcast(
    tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """Copy the *tensor* of the world's rank *src* into the *tensor* of every rank of *group*, all of one shape.

    Raises: ValueError for a rank outside the group; RuntimeError for *use_calc_stream* without *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/broadcast_en.html
    """
    return broadcast_from(_BROADCAST, tensor, src, *stream_sync(_BROADCAST, group, sync_op, use_calc_stream))


def gather(
    tensor: Tensor,
    gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Copy every rank's *tensor* into its place, of that shape, in *gather_list* on the world's rank *dst*; an empty list is filled.

    Raises: AssertionError when *gather_list* is missing there or of another length; RuntimeError for *use_calc_stream*
    without *sync_op*. Warns where *gather_list* has no meaning.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/gather_en.html
    """
    return gather_at(_GATHER, tensor, gather_list, dst, *stream_sync(_GATHER, group, sync_op, use_calc_stream))


def recv(
    tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """Receive into *tensor* as many elements as it has from the world's rank *src*.

    Raises: ValueError for the caller's own rank, or one outside the group; RuntimeError for *use_calc_stream* without
    *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/recv_en.html
    """
    return receive_from(_RECV, tensor, src, group, stream_point_sync(_RECV, group, sync_op, use_calc_stream))


def scatter(
    tensor: Tensor,
    tensor_or_tensor_list: Sequence[Tensor] | Tensor | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Copy each rank's place in the *tensor_or_tensor_list* of the world's rank *src* into its *tensor*, of the same shape.

    One tensor will do for the list: of shape (n * m, ...) where n ranks have (m, ...).
    Raises: RuntimeError when it is missing there, and for *use_calc_stream* without *sync_op*. Warns if given elsewhere.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/scatter_en.html
    """
    return scatter_from(
        _SCATTER, tensor, tensor_or_tensor_list, src, *stream_sync(_SCATTER, group, sync_op, use_calc_stream)
    )


def send(
    tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """Send *tensor* to the world's rank *dst*, which receives as many elements.

    Raises: ValueError for the caller's own rank, or one outside the group; RuntimeError for *use_calc_stream* without
    *sync_op*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/stream/send_en.html
    """
    return send_to(_SEND, tensor, dst, group, stream_point_sync(_SEND, group, sync_op, use_calc_stream))
