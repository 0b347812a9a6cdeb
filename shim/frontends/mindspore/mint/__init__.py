"""``mindspore.mint``: only ``distributed`` of it."""

from __future__ import annotations

from typing import Any

from shim.frontends import _absent


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here, with the reason where MindSpore has it."""
    _absent.refuse_name(__name__, name)
