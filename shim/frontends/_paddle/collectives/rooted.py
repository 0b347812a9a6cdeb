"""The collectives with a root, the same in every version of paddle."""

from __future__ import annotations

from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.exchanges import broadcast_from, gather_at, scatter_from
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.tasks import Task

_BROADCAST = paddle_function("broadcast", output="tensor", input="tensor", root="src")
_GATHER = paddle_function("gather", output="gather_list", input="tensor", root="dst")
_SCATTER = paddle_function("scatter", output="tensor", input="tensor_list", root="src")


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Copy the *tensor* of the world's rank *src* into the *tensor* of every rank of *group*.

    Raises: ValueError for a rank outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/broadcast_en.html
    """
    return broadcast_from(_BROADCAST, tensor, src, group, sync_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Copy every rank's *tensor* into its place in *gather_list* on the world's rank *dst*; an empty list is filled.

    Raises: AssertionError when *gather_list* is missing there or of another length; warns where it has no meaning.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gather_en.html
    """
    return gather_at(_GATHER, tensor, gather_list, dst, group, sync_op)


def scatter(
    tensor: Tensor,
    tensor_list: list[Tensor] | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Copy each rank's place in the *tensor_list* of the world's rank *src* into its *tensor*.

    Raises: RuntimeError when *tensor_list* is missing there; warns where it has no meaning.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/scatter_en.html
    """
    return scatter_from(_SCATTER, tensor, tensor_list, src, group, sync_op)
