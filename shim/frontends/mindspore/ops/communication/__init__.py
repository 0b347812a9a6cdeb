"""``mindspore.ops.communication``: what ``mint.distributed`` has, and a switch.

The functions write into the tensors they are given, unless ``set_comm_ops_inplace`` makes them return their results. Those
that it does not change are ``mint.distributed``'s, whose names their errors say.
What requires a gradient of torch's or Paddle's is treated as ``mint.distributed`` and ``comm_func`` treat it.
"""

from __future__ import annotations

from shim.frontends import _releases
from shim.frontends.mindspore.ops.communication._functions import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.ops.communication._functions import __all__ as _names
from shim.frontends.mindspore.ops.communication._rooted import gather, scatter

__all__ = [*_names, "gather", "scatter"]

_releases.follow(globals())
