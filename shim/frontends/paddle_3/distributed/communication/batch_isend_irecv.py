"""Sends and receives that begin together, by their other path."""

from __future__ import annotations

from shim.frontends._paddle.collectives.batches import P2POp, _coalescing_manager, batch_isend_irecv

__all__ = ["P2POp", "_coalescing_manager", "batch_isend_irecv"]
