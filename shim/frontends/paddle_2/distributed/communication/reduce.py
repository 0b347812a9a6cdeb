"""``ReduceOp`` and ``reduce`` by their other path."""

from __future__ import annotations

from shim.frontends._paddle.reduce_op import ReduceOp
from shim.frontends.paddle_2.distributed._collectives import reduce

__all__ = ["ReduceOp", "reduce"]
