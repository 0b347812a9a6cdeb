"""``mindspore.ops.operations``: what it has of ``comm_ops``, under whose names programs import primitives as ``P``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent
from shim.frontends.mindspore.ops.operations.comm_ops import *  # noqa: F403  # all that it lists
from shim.frontends.mindspore.ops.operations.comm_ops import __all__ as _names

__all__ = [*_names]

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where MindSpore has it."""
        _absent.refuse_name(__name__, name)
