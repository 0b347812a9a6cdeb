"""All-to-all in the order of paddle 2: the input before the output."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.exchanges import exchange, exchange_single
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.tasks import Task

_ALLTOALL = paddle_function("alltoall", output="out_tensor_list", input="in_tensor_list")
_ALLTOALL_SINGLE = paddle_function(
    "alltoall_single",
    output="out_tensor",
    input="in_tensor",
    output_splits="out_split_sizes",
    input_splits="in_split_sizes",
)


def alltoall(
    in_tensor_list: list[Tensor] | Tensor,
    out_tensor_list: list[Tensor] | Tensor,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Send tensor *j* of *in_tensor_list* to rank *j*, which finds it in its *out_tensor_list* at this rank.

    An empty *out_tensor_list* is filled; two tensors in place of the lists are cut into equal parts.
    Raises: RuntimeError when one is missing, empty or of another kind; ValueError for a wrong length, size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/alltoall_en.html
    """
    return exchange(_ALLTOALL, out_tensor_list, in_tensor_list, group, sync_op)


def alltoall_single(
    in_tensor: Tensor,
    out_tensor: Tensor,
    in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Cut *in_tensor* along dimension 0 into a part for each rank and put the parts received in *out_tensor*.

    *in_split_sizes* and *out_split_sizes* are the rows of each rank's part; None means equal parts.
    Raises: ValueError for sizes that do not add up to the rows, or rows that cannot be cut equally.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/alltoall_single_en.html
    """
    return exchange_single(_ALLTOALL_SINGLE, out_tensor, in_tensor, out_split_sizes, in_split_sizes, group, sync_op)
