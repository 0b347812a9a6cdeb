"""``mindspore.mint``: only ``distributed`` of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shim.frontends import _absent

if not TYPE_CHECKING:  # type checkers then find misspelt names

    def __getattr__(name: str) -> Any:
        """Refuse a name that is not here, with the reason where MindSpore has it."""
        _absent.refuse_name(__name__, name)
