"""The collectives whose signatures are the same in every version of paddle; tensors of any framework are taken."""

from __future__ import annotations

from shim.core.engines.base import Tensor
from shim.errors import NotMemberError
from shim.frontends._paddle.collectives.exchanges import gather_all
from shim.frontends._paddle.errors import OutsiderError, paddle_function
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.groups.waiting import meet, settled
from shim.frontends._paddle.tasks import Task

__all__ = ["all_gather", "barrier", "wait"]

_ALL_GATHER = paddle_function(
    "all_gather", errors={NotMemberError: OutsiderError}, output="tensor_list", input="tensor"
)
_BARRIER = paddle_function("barrier")
_WAIT = paddle_function("wait", input="tensor")


def all_gather(
    tensor_list: list[Tensor] | Tensor, tensor: Tensor, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Copy every rank's *tensor* into its place in *tensor_list*: new ones in an empty list, or parts of one tensor.

    Raises: RuntimeError outside *group*; ValueError for a wrong length, size or dtype.
    Deviates: always returns a task; so does paddle, though its page says None.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/all_gather_en.html
    """
    return gather_all(_ALL_GATHER, tensor_list, tensor, group, sync_op)


def barrier(group: Group | None = None) -> None:
    """Wait until every rank of *group* has called this; a process outside it returns at once.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/barrier_en.html
    """
    return meet(_BARRIER, group)


def wait(tensor: Tensor, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Wait until every call that was started in *group* has ended, those on *tensor* included.

    Deviates: waits for all of the group's calls, and for all that is on the device, whichever stream *use_calc_stream* names.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/wait_en.html
    """
    return settled(_WAIT, tensor, group, use_calc_stream)
