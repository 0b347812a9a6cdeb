"""Sends and receives that begin together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from shim.core import work
from shim.core.callers import Caller
from shim.core.engines.base import Tensor
from shim.frontends._paddle.collectives.point_to_point import irecv, isend, prepared_receive, prepared_send
from shim.frontends._paddle.errors import ArgumentRuntimeError, ArgumentTypeError, paddle_function
from shim.frontends._paddle.graphs import refuse_symbolic
from shim.frontends._paddle.groups.group_views import Group, group_of, member_of
from shim.frontends._paddle.tasks import Task, finish

_P2P_OP = paddle_function("P2POp")
_BATCH = paddle_function("batch_isend_irecv")
_COALESCING = paddle_function("_coalescing_manager")
_GUARD = paddle_function("_with_batch_p2p_guard")
_SEND = paddle_function("batch_isend_irecv", input="tensor", peer="peer")
_RECEIVE = paddle_function("batch_isend_irecv", output="tensor", peer="peer")


class P2POp:
    """A send or receive for ``batch_isend_irecv``: *op* is ``isend`` or ``irecv``, *peer* a rank of the world.

    Raises: RuntimeError for another *op*, and without *group* before initialisation.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/P2POp_en.html
    """

    def __init__(self, op: Callable[..., Task | None], tensor: Tensor, peer: int, group: Group | None = None) -> None:
        if op is not isend and op is not irecv:
            raise _P2P_OP.explain(
                ArgumentRuntimeError(f"op must be paddle.distributed.isend or irecv of this frontend, got {op!r}")
            )
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = member_of(_P2P_OP, group)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Task] | None:
    """Begin all sends and receives of *p2p_op_list* together, in whatever order they are, and return a task for each.

    Raises: RuntimeError for what is no list of P2POp, an empty one, and groups of different backends.
    Deviates: the order does not matter; paddle on gloo waits forever when two ranks send to each other first.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/batch_isend_irecv_en.html
    """
    return _begun_together(_BATCH, p2p_op_list)


def _begun_together(caller: Caller, ops: Any) -> list[Task] | None:
    """Prepare all *ops*, so that a wrong one is refused before any has begun, and begin them."""
    if not isinstance(ops, list) or not ops or not all(isinstance(op, P2POp) for op in ops):
        raise caller.explain(ArgumentRuntimeError(f"p2p_op_list must be a list of at least one P2POp, got {ops!r}"))
    backends = sorted({op.group.backend for op in ops})
    if len(backends) > 1:
        raise caller.explain(
            ArgumentRuntimeError(f"p2p_op_list must have groups of one backend, got {' and '.join(backends)}")
        )
    refuse_symbolic(caller, [op.tensor for op in ops])
    prepared = [_prepared(op) for op in ops]
    work.read_before_others_write(prepared)
    tasks = [finish(one, False, op.group) for one, op in zip(prepared, ops, strict=True)]
    begun = [task for task in tasks if task is not None]
    return begun or None


def _prepared(op: P2POp) -> work.Work:
    if op.op is isend:
        return prepared_send(_SEND, op.tensor, op.peer, op.group)
    return prepared_receive(_RECEIVE, op.tensor, op.peer, op.group)


def _coalescing_manager(group: Group | None, tasks: list[Task] | None = None) -> AbstractContextManager[None]:
    """Return a context for sends and receives in *group*, whose *tasks* it may be given; none waits for one before it.

    Raises: TypeError for what is no group, or no list of tasks.
    """
    return _nothing_to_collect(group, tasks)


def _with_batch_p2p_guard(backend: str) -> AbstractContextManager[None]:
    """Return a context for sends and receives by any *backend*; none waits for one before it."""
    return _nothing_to_guard(backend)


def _nothing_to_collect(group: Any, tasks: Any) -> AbstractContextManager[None]:
    group_of(_COALESCING, group)
    if tasks is not None and not (isinstance(tasks, list) and all(isinstance(task, Task) for task in tasks)):
        raise _COALESCING.explain(ArgumentTypeError(f"tasks must be a list of tasks or None, got {tasks!r}"))
    return nullcontext()


def _nothing_to_guard(backend: Any) -> AbstractContextManager[None]:
    if not isinstance(backend, str):
        raise _GUARD.explain(ArgumentTypeError(f"backend must be a str, got {backend!r}"))
    return nullcontext()
