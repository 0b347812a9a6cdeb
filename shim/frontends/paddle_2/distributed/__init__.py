"""``paddle.distributed`` of paddle 2 over this project's engine; the input comes first in alltoall and alltoall_single.

Write ``import shim.frontends.paddle_2.distributed as dist``.
Deviates: every tensor that a call writes counts as written in place, so a backward that needs its old elements raises
RuntimeError; paddle silently gives a wrong gradient.
See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/Overview_en.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent
from shim.frontends._paddle.collectives import *  # noqa: F403  # all that it lists
from shim.frontends._paddle.collectives import __all__ as _of_both
from shim.frontends._paddle.graphs import run_as_written
from shim.frontends._paddle.world import *  # noqa: F403  # all that it lists
from shim.frontends._paddle.world import __all__ as _of_world
from shim.frontends.paddle_2.distributed import collective, communication, stream
from shim.frontends.paddle_2.distributed import parallel_helper as parallel_helper
from shim.frontends.paddle_2.distributed._collectives import *  # noqa: F403  # all that it lists
from shim.frontends.paddle_2.distributed._collectives import __all__ as _collectives
from shim.frontends.paddle_2.distributed._groups import init_parallel_env, new_group

__all__ = [
    *_collectives,
    *_of_both,
    *_of_world,
    "collective",
    "communication",
    "init_parallel_env",
    "new_group",
    "stream",
]

run_as_written(globals())

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where paddle has it."""
        _absent.refuse_name(__name__, name)
