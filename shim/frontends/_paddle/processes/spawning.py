"""Starting ranks from a program, the same in every version of paddle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.processes.spawned import MultiprocessContext, start

__all__ = ["spawn"]

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
