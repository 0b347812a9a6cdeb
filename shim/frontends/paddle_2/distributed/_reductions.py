"""The reducing collectives, at the signatures and with the reduce ops of paddle 2."""

from __future__ import annotations

from collections.abc import Sequence

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.reductions import reduce_at, reduce_everywhere, reduce_one_tensor, reduce_parts
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.reduce_op import WITHOUT_AVERAGE, ReduceOp, engine_op
from shim.frontends._paddle.tasks import Task

_ALL_REDUCE = paddle_function("all_reduce", output="tensor", input="tensor")
_REDUCE = paddle_function("reduce", output="tensor", input="tensor", root="dst")
_REDUCE_SCATTER = paddle_function("reduce_scatter", output="tensor", input="tensor_list")
_REDUCE_SCATTER_BASE = paddle_function("_reduce_scatter_base", output="output", input="input")


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Combine every rank's *tensor* by *op*, in place.

    Raises: ValueError for an *op* that is not paddle's, or that the dtype has not; AVG is for paddle 3.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/all_reduce_en.html
    """
    return reduce_everywhere(_ALL_REDUCE, tensor, engine_op(_ALL_REDUCE, group, op, WITHOUT_AVERAGE), group, sync_op)


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine every rank's *tensor* by *op* into the *tensor* of the world's rank *dst*.

    Raises: ValueError for a *dst* outside the group and an *op* that is not paddle's, or that the dtype has not; AVG is for paddle 3.
    Deviates: other ranks' tensors are left as they are; paddle on gloo overwrites parts of them.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/reduce_en.html
    """
    return reduce_at(_REDUCE, tensor, dst, engine_op(_REDUCE, group, op, WITHOUT_AVERAGE), group, sync_op)


def reduce_scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor] | Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Combine every rank's *tensor_list*, a tensor for each rank or one to be cut, by *op*; *tensor* gets this rank's part.

    Raises: ValueError for an *op* that is not paddle's; ValueError for a wrong length, size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/reduce_scatter_en.html
    """
    return reduce_parts(
        _REDUCE_SCATTER, tensor, tensor_list, engine_op(_REDUCE_SCATTER, group, op, WITHOUT_AVERAGE), group, sync_op
    )


def _reduce_scatter_base(
    output: Tensor, input: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine every rank's *input* by *op* and put this rank's part of it, cut along dimension 0, in *output*.

    Raises: ValueError for an *op* that is not SUM, MAX, MIN or PROD; ValueError for a wrong size or dtype.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/2.6/api/paddle/distributed/reduce_scatter_en.html
    """
    return reduce_one_tensor(
        _REDUCE_SCATTER_BASE, output, input, engine_op(_REDUCE_SCATTER_BASE, group, op, WITHOUT_AVERAGE), group, sync_op
    )
