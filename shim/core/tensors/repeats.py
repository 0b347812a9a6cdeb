"""Whether a list has an object twice; it is asked in every call with a list, so the native module answers."""

from __future__ import annotations

from shim._native import has_repeated

__all__ = ["has_repeated"]
