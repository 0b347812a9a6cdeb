"""Tensors' own functions in the statements that have to do with collectives: the scope ``statements``."""

from __future__ import annotations

from shim.port.tensors.walk import port_statements

__all__ = ["port_statements"]
