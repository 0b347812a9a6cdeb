"""``reduce_scatter``, and its form for one tensor, by their other path."""

from __future__ import annotations

from shim.frontends.paddle_2.distributed._collectives import _reduce_scatter_base, reduce_scatter

__all__ = ["_reduce_scatter_base", "reduce_scatter"]
