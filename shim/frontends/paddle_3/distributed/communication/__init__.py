"""The collectives, sends and receives of paddle 3 by their other path."""

from __future__ import annotations

from shim.frontends._paddle.world.lifecycle import destroy_process_group, get_backend, get_group, is_initialized
from shim.frontends.paddle_3.distributed._collectives import *  # noqa: F403  # after the modules whose names its functions have
from shim.frontends.paddle_3.distributed._collectives import __all__ as _collectives
from shim.frontends.paddle_3.distributed.communication import batch_isend_irecv, group, reduce, reduce_scatter, stream

__all__ = [*_collectives, "destroy_process_group", "get_backend", "get_group", "group", "is_initialized", "stream"]
