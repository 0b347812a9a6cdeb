"""``paddle.distributed.stream`` by its other path."""

from __future__ import annotations

from shim.frontends._paddle.collectives.stream import *  # noqa: F403  # all that it lists

# Imported here, so that the function takes the name that its module has.
from shim.frontends.paddle_3.distributed.communication.stream.reduce_scatter import reduce_scatter as reduce_scatter
from shim.frontends.paddle_3.distributed.stream import *  # noqa: F403  # all that it lists
from shim.frontends.paddle_3.distributed.stream import __all__ as _names

__all__ = [*_names]
