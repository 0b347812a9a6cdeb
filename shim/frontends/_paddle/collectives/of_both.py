"""The collectives whose signatures are the same in every version of paddle, and waiting; tensors of any framework are taken."""

from __future__ import annotations

import sys
from typing import Any

from shim.core import calls, tensors
from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.errors import NotMemberError, ShimError
from shim.frontends._paddle.collectives.bodies import broadcast_from, gather_all, gather_at, scatter_from
from shim.frontends._paddle.errors import ArgumentTypeError, OutsiderError, paddle_function
from shim.frontends._paddle.graphs import SYMBOLIC, refuse_in_graphs
from shim.frontends._paddle.groups.group_views import Group, group_of, member_of
from shim.frontends._paddle.tasks import Task, settle

_ALL_GATHER = paddle_function(
    "all_gather", errors={NotMemberError: OutsiderError}, output="tensor_list", input="tensor"
)
_BARRIER = paddle_function("barrier")
_WAIT = paddle_function("wait", input="tensor")
_BROADCAST = paddle_function("broadcast", output="tensor", input="tensor", root="src")
_GATHER = paddle_function("gather", output="gather_list", input="tensor", root="dst")
_SCATTER = paddle_function("scatter", output="tensor", input="tensor_list", root="src")


def all_gather(
    tensor_list: list[Any] | Tensor, tensor: Tensor, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Copy every rank's *tensor* into its place in *tensor_list*, a tensor of its shape for each rank.

    An empty list is filled. One tensor will do for the list: of shape (n * m, ...) where n ranks have (m, ...).
    Raises: RuntimeError outside *group*; ValueError for a wrong length, size or dtype.
    Deviates: always returns a task; so does paddle, though its page says None.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/all_gather_en.html
    """
    return gather_all(_ALL_GATHER, tensor_list, tensor, group, sync_op)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Copy the *tensor* of the world's rank *src* into the *tensor* of every rank of *group*, all of one shape.

    Raises: ValueError for a rank outside the group.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/broadcast_en.html
    """
    return broadcast_from(_BROADCAST, tensor, src, group, sync_op)


def gather(
    tensor: Tensor,
    gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Copy every rank's *tensor* into its place, of that shape, in *gather_list* on the world's rank *dst*; an empty list is filled.

    Raises: AssertionError when *gather_list* is missing there or of another length; warns where it has no meaning.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/gather_en.html
    """
    return gather_at(_GATHER, tensor, gather_list, dst, group, sync_op)


def scatter(
    tensor: Tensor,
    tensor_list: list[Any] | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Copy each rank's place in the *tensor_list* of the world's rank *src* into its *tensor*, of the same shape.

    Raises: RuntimeError when *tensor_list* is missing there; warns where it has no meaning.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/scatter_en.html
    """
    return scatter_from(_SCATTER, tensor, tensor_list, src, group, sync_op)


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


def meet(caller: Caller, group: Any) -> None:
    """Wait for the other ranks of *group*, and for what they put on their devices; as in paddle, a process outside it returns without a warning."""
    members = group_of(caller, group)
    refuse_in_graphs(caller)
    if members.rank >= 0:
        _finish_device()
        calls.barrier(caller, members).wait()


def settled(caller: Caller, tensor: Any, group: Any, use_calc_stream: Any) -> None:
    """Wait until everything that was started in *group* has ended, on a device too; a process outside it returns at once."""
    view = member_of(caller, group)
    if not view.is_member() or type(tensor) in SYMBOLIC:  # a graph runs its collectives in order
        return
    if not isinstance(use_calc_stream, bool):
        raise caller.explain(ArgumentTypeError(f"use_calc_stream must be a bool, got {use_calc_stream!r}"))
    try:
        tensors.reader_for(type(tensor))
    except ShimError as error:
        raise caller.explain(ArgumentTypeError(str(error).replace("{role}", "{input}"))) from None
    settle(view.id)
    _finish_device()


def _finish_device() -> None:
    """Wait for what is on the device that Paddle uses, where it is not the CPU: all its streams, as Paddle's own barrier does."""
    paddle = sys.modules.get("paddle")
    if paddle is not None and not isinstance(paddle.framework._current_expected_place(), paddle.CPUPlace):
        paddle.device.synchronize()
