"""The collectives, sends and receives of paddle 3 by their other path."""

from __future__ import annotations

from shim.frontends import _releases
from shim.frontends._paddle.collectives import *  # noqa: F403  # all that it lists
from shim.frontends._paddle.collectives import __all__ as _of_both
from shim.frontends._paddle.world.lifecycle import destroy_process_group, get_backend, get_group, is_initialized
from shim.frontends.paddle_3.distributed._collectives import *  # noqa: F403  # all that it lists
from shim.frontends.paddle_3.distributed._collectives import __all__ as _collectives
from shim.frontends.paddle_3.distributed.communication import group, stream

# Imported here, so that the functions take the names that their modules have.
from shim.frontends.paddle_3.distributed.communication.batch_isend_irecv import batch_isend_irecv as batch_isend_irecv
from shim.frontends.paddle_3.distributed.communication.reduce import reduce as reduce
from shim.frontends.paddle_3.distributed.communication.reduce_scatter import reduce_scatter as reduce_scatter

__all__ = [
    *_collectives,
    *_of_both,
    "destroy_process_group",
    "get_backend",
    "get_group",
    "group",
    "is_initialized",
    "stream",
]

_releases.follow(globals())
