"""``mindspore.mint.distributed``: collectives that write into the tensors they are given.

A tensor is whatever the engine can read: MindSpore's, NumPy's, torch's or Paddle's. Groups are named by strings, and
ranks that are given are ranks of the world. One of torch's or Paddle's that requires a gradient is overwritten as its own
framework's collectives overwrite it: what is differentiated there knows nothing of it.
"""

from __future__ import annotations

from shim.frontends import _releases
from shim.frontends.mindspore.mint.distributed import distributed as distributed  # a module, as in MindSpore
from shim.frontends.mindspore.mint.distributed._functions import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.mint.distributed._functions import __all__ as _names

__all__ = [*_names]

_releases.follow(globals())
