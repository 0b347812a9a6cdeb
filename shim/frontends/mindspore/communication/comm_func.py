"""``mindspore.communication.comm_func``: functions that return new tensors and leave their arguments as they are.

MindSpore keeps them for older programs and logs that they are deprecated. Most of them have gradients; the ranks that
they are given are ranks of the world. A tensor of torch's or Paddle's that requires a gradient is refused: what is returned
would be cut off from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends.mindspore._functional import exchanges, functional
from shim.frontends.mindspore._functional.functional import Result
from shim.frontends.mindspore._groups.group_names import GlobalComm, group_name
from shim.frontends.mindspore._handles import CommHandle
from shim.frontends.mindspore._in_place import collectives, point_to_point
from shim.frontends.mindspore._reduce_ops import BASIC_OPS, ReduceOp

__all__ = [
    "CommHandle",
    "P2POp",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single_with_output_shape",
    "all_to_all_v_c",
    "all_to_all_with_output_shape",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather_into_tensor",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
    "send",
]

_ALL_REDUCE = Caller("mindspore.communication.comm_func.all_reduce", input="tensor")
_ALL_GATHER_INTO_TENSOR = Caller("mindspore.communication.comm_func.all_gather_into_tensor", input="tensor")
_REDUCE_SCATTER_TENSOR = Caller("mindspore.communication.comm_func.reduce_scatter_tensor", input="tensor")
_REDUCE = Caller("mindspore.communication.comm_func.reduce", input="tensor", root="dst")
_BROADCAST = Caller("mindspore.communication.comm_func.broadcast", output="tensor", input="tensor", root="src")
_GATHER_INTO_TENSOR = Caller("mindspore.communication.comm_func.gather_into_tensor", input="tensor", root="dst")
_SCATTER_TENSOR = Caller("mindspore.communication.comm_func.scatter_tensor", input="tensor", root="src")
_ALL_TO_ALL = Caller(
    "mindspore.communication.comm_func.all_to_all_with_output_shape",
    output="output_shape_list",
    input="input_tensor_list",
)
_ALL_TO_ALL_SINGLE = Caller(
    "mindspore.communication.comm_func.all_to_all_single_with_output_shape",
    output="output_shape",
    input="tensor",
    output_splits="output_split_sizes",
    input_splits="input_split_sizes",
)
_ALL_TO_ALL_V_C = Caller(
    "mindspore.communication.comm_func.all_to_all_v_c",
    output_splits="send_count_matrix",
    input_splits="send_count_matrix",
)
_BARRIER = Caller("mindspore.communication.comm_func.barrier")
_SEND = Caller("mindspore.communication.comm_func.send", input="tensor", peer="dst")
_RECV = Caller("mindspore.communication.comm_func.recv", output="tensor", peer="src")
_ISEND = Caller("mindspore.communication.comm_func.isend", input="tensor", peer="dst")
_IRECV = Caller("mindspore.communication.comm_func.irecv", output="tensor", peer="src")
_P2P_OP = Caller("mindspore.communication.comm_func.P2POp")
_BATCH_ISEND_IRECV = Caller(
    "mindspore.communication.comm_func.batch_isend_irecv", output="tensor", input="tensor", peer="P2POp.peer"
)


def all_reduce(
    tensor: Tensor,
    op: str = ReduceOp.SUM,
    group: str = GlobalComm.WORLD_COMM_GROUP,
    async_op: bool = False,
) -> Result:
    """Return all ranks' *tensor*, all of one shape, combined by *op*, "sum", "prod", "min" or "max", with the handle or None.

    Raises: TypeError if *tensor* is no tensor, *op* not one of these, *group* no str or *async_op* no bool.
    Deviates: the gradient is right for every *op*.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.all_reduce.html
    """
    return functional.all_reduce(_ALL_REDUCE, tensor, op, group_name(_ALL_REDUCE, group), async_op, BASIC_OPS)


def all_gather_into_tensor(tensor: Tensor, group: str = GlobalComm.WORLD_COMM_GROUP, async_op: bool = False) -> Result:
    """Return the *tensor* of all N ranks, each of shape (x_1, ..., x_R), as one (N*x_1, ..., x_R), with the handle or None.

    Raises: TypeError if *tensor* is no tensor, *group* no str or *async_op* no bool.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.all_gather_into_tensor.html
    """
    return functional.all_gather_into_tensor(
        _ALL_GATHER_INTO_TENSOR, tensor, group_name(_ALL_GATHER_INTO_TENSOR, group), async_op
    )


def reduce_scatter_tensor(
    tensor: Tensor,
    op: str = ReduceOp.SUM,
    group: str = GlobalComm.WORLD_COMM_GROUP,
    async_op: bool = False,
) -> Result:
    """Return this rank's (x_1, ..., x_R) of all N ranks' *tensor* of shape (N*x_1, ..., x_R), combined by *op*, with the handle or None.

    Raises: TypeError if *tensor* is no tensor, *op* no reduce op, *group* no str or *async_op* no bool; ValueError for
    rows that cannot be divided by the number of ranks.
    Deviates: the gradient is right for every *op*.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.reduce_scatter_tensor.html
    """
    return functional.reduce_scatter_tensor(
        _REDUCE_SCATTER_TENSOR, tensor, op, group_name(_REDUCE_SCATTER_TENSOR, group), async_op, BASIC_OPS
    )


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str = GlobalComm.WORLD_COMM_GROUP) -> Any:
    """Return all ranks' *tensor*, all of one shape, combined by *op*, on the world's rank *dst*; elsewhere one 0, which means nothing.

    Raises: TypeError if *tensor* is no tensor, *dst* no int, *op* no reduce op or *group* no str.
    Deviates: the gradient is right for every *op*.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.reduce.html
    """
    return functional.reduce(_REDUCE, tensor, dst, op, group_name(_REDUCE, group), BASIC_OPS)


def broadcast(tensor: Tensor, src: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP) -> Any:
    """Return the *tensor* of the world's rank *src*; every rank's *tensor* has its shape.

    Raises: TypeError if *tensor* is no tensor, *src* no int or *group* no str.
    Deviates: *src*'s gradient is the sum of all ranks', the others' is 0; MindSpore leaves each rank its own.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.broadcast.html
    """
    return functional.broadcast(_BROADCAST, tensor, src, group_name(_BROADCAST, group))


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP) -> Any:
    """Return all N ranks' *tensor*, each of shape (x_1, ..., x_R), as one (N*x_1, ..., x_R) on the world's rank *dst*.

    Elsewhere, it returns one 0, which means nothing.
    Raises: TypeError if *tensor* is no tensor, *dst* no int or *group* no str.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.gather_into_tensor.html
    """
    return functional.gather_into_tensor(_GATHER_INTO_TENSOR, tensor, dst, group_name(_GATHER_INTO_TENSOR, group))


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP) -> Any:
    """Return this rank's (x_1, ..., x_R) of the *tensor* of the world's rank *src*; each rank's has shape (N*x_1, ..., x_R).

    Raises: TypeError if *tensor* is no tensor, *src* no int or *group* no str; ValueError for rows that cannot be
    divided by the number of ranks.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.scatter_tensor.html
    """
    return functional.scatter_tensor(_SCATTER_TENSOR, tensor, src, group_name(_SCATTER_TENSOR, group))


def all_to_all_with_output_shape(
    output_shape_list: Sequence[Any],
    input_tensor_list: Sequence[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> Result:
    """Return a tuple of tensor j of rank i's *input_tensor_list*, i = 0...N-1, on rank j, with the handle or None.

    *output_shape_list* holds their shapes, or tensors that have them.
    Raises: TypeError if it does not, or the inputs are no tensors of one dtype, one for each rank.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.all_to_all_with_output_shape.html
    """
    return functional.all_to_all(_ALL_TO_ALL, output_shape_list, input_tensor_list, group, async_op)


def all_to_all_single_with_output_shape(
    output_shape: Any,
    tensor: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Result:
    """Return *output_split_sizes*[i] rows from each rank i, which sends *input_split_sizes*[j] of its *tensor* to rank j.

    They come with the handle or None, as one tensor of *output_shape*, a shape or a tensor that has it; if that is
    empty, as one of shape ().
    Raises: TypeError if *tensor* is no tensor or *output_shape* no shape; ValueError for rows that do not fit.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.all_to_all_single_with_output_shape.html
    """
    return functional.all_to_all_single(
        _ALL_TO_ALL_SINGLE, output_shape, tensor, output_split_sizes, input_split_sizes, group, async_op
    )


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: list[int], group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Send *send_count_matrix*[i*N+j] rows of rank i's *input* to rank j's *output*, on all N ranks alike.

    Row i of the matrix adds up to the rows of rank i's *input*, column i to those of its *output*.
    Raises: TypeError if one of them is no tensor, the matrix no list of N*N ints, *group* no str or *async_op* no bool.
    Deviates: has a gradient; MindSpore silently leaves it out.
    See: https://www.mindspore.cn/docs/en/stable/api_python/communication/mindspore.communication.comm_func.all_to_all_v_c.html
    """
    return collectives.all_to_all_by_matrix(_ALL_TO_ALL_V_C, output, input, send_count_matrix, group, async_op)


def barrier(group: str = GlobalComm.WORLD_COMM_GROUP) -> None:
    """Wait until every rank of *group* has called this.

    Raises: TypeError if *group* is no str.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.barrier.html
    """
    collectives.barrier(_BARRIER, group_name(_BARRIER, group), False)


def send(tensor: Tensor, dst: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP, tag: int = 0) -> None:
    """Send *tensor* to the world's rank *dst*, which receives as many elements under the same *tag*.

    Raises: TypeError if *tensor* is no tensor, *dst* or *tag* no int or *group* no str; ValueError for the calling rank.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.send.html
    """
    return point_to_point.send(_SEND, tensor, dst, group_name(_SEND, group), tag)


def recv(tensor: Tensor, src: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP, tag: int = 0) -> Any:
    """Return a tensor of the world's rank *src*, sent under the same *tag*; *tensor* says its shape and dtype.

    Raises: TypeError if *tensor* is no tensor, *src* or *tag* no int or *group* no str; ValueError if *src* is not in *group*.
    Deviates: no gradient goes back to *src*.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.recv.html
    """
    return functional.recv(_RECV, tensor, src, group_name(_RECV, group), tag)


def isend(tensor: Tensor, dst: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP, tag: int = 0) -> CommHandle:
    """Send *tensor* to the world's rank *dst*, which receives as many elements, in the background, and return the handle to wait for.

    Raises: TypeError if *tensor* is no tensor, *dst* or *tag* no int or *group* no str; ValueError for the calling rank.
    Deviates: raises for a tensor whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.isend.html
    """
    return point_to_point.isend(_ISEND, tensor, dst, group_name(_ISEND, group), tag)


def irecv(
    tensor: Tensor, src: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP, tag: int = 0
) -> tuple[Any, CommHandle]:
    """Return what will be a tensor of the world's rank *src*, of the shape and dtype of *tensor*, and the handle to wait for.

    Raises: TypeError if *tensor* is no tensor, *src* or *tag* no int or *group* no str; ValueError if *src* is not in *group*.
    Deviates: no gradient goes back to *src*.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.irecv.html
    """
    return functional.irecv(_IRECV, tensor, src, group_name(_IRECV, group), tag)


class P2POp(exchanges.Exchange):
    """One part of a batch: send *tensor* to the world's rank *peer* of *group*, or receive one like it, as *op* says.

    What is received may also be described by a shape as *tensor* and by *recv_dtype*.
    Raises: ValueError if *op* is not called isend or irecv; TypeError for wrong types; NotImplementedError for a *tag*.
    Deviates: *recv_dtype* may be another framework's, whose tensor it then returns.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.P2POp.html
    """

    def __init__(
        self,
        op: str | Callable[..., Any],
        tensor: Tensor,
        peer: int,
        group: str | None = None,
        tag: int = 0,
        *,
        recv_dtype: Any = None,
    ) -> None:
        super().__init__(_P2P_OP, op, tensor, peer, group, tag, recv_dtype)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> tuple[Any, ...]:
    """Carry out *p2p_op_list* together, and return what each of it received, or a 0 in its place where it sent.

    Raises: TypeError if the list is empty or holds anything but P2POps; ValueError for a shape without recv_dtype.
    Deviates: raises for a tensor to send whose gradient is being recorded.
    See: https://www.mindspore.cn/docs/en/r2.7.1/api_python/communication/mindspore.communication.comm_func.batch_isend_irecv.html
    """
    return exchanges.carry_out(_BATCH_ISEND_IRECV, p2p_op_list, P2POp)
