"""The ranks that ``spawn`` starts, in paddle's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends._paddle.errors import ArgumentTypeError
from shim.frontends._paddle.processes.spawn_options import plan_for
from shim.launch.spawning import SpawnedRanks

__all__ = ["MultiprocessContext", "start"]


class MultiprocessContext(SpawnedRanks):
    """The processes of one ``spawn``: ``processes``, their ``return_queues`` and ``error_queues``, and ``join``."""


def start(
    caller: Caller,
    func: Callable[..., Any],
    args: Iterable[Any],
    count: Any,
    join: bool,
    daemon: bool,
    options: Mapping[str, Any],
) -> MultiprocessContext:
    """Start the processes, and wait for them where *join* asks for it."""
    if not callable(func):
        raise caller.explain(ArgumentTypeError(f"func must be callable, got {func!r}"))
    plan = plan_for(caller, count, options)
    try:
        arguments = tuple(args)
    except TypeError:
        raise caller.explain(ArgumentTypeError(f"args must be a tuple of func's arguments, got {args!r}")) from None
    try:
        context = MultiprocessContext(
            caller.function, func, arguments, plan.environments, plan.start_method, bool(daemon)
        )
    except ArgumentError as error:
        raise caller.explain(ArgumentTypeError(str(error))) from None
    if join:
        context.join_all()
    return context
