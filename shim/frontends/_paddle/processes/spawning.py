"""Starting ranks from a program, the same in every version of paddle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shim.core.callers import Caller
from shim.errors import ArgumentError
from shim.frontends._paddle.errors import ArgumentTypeError, paddle_function
from shim.frontends._paddle.processes.spawn_options import plan_for
from shim.launch.spawning import SpawnedRanks


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


_SPAWN = paddle_function("spawn")


def spawn(
    func: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Any,
) -> MultiprocessContext:
    """Call *func* with *args* in *nprocs* new processes (-1: one for each CPU), which are the ranks of one job of this host.

    *join* waits for all, *daemon* ends them with this process; *options* are start_method, backend, gpus, xpus and ips.
    Raises: an Exception with the traceback when a rank fails, after the others were ended; ValueError for other options.
    Deviates: raises for options that paddle has deprecated, and for other hosts than this one.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/spawn_en.html
    """
    return start(_SPAWN, func, args, nprocs, join, daemon, options)
