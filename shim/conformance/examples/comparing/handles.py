"""Finds what an example has started and does not wait for, before it shows what comes of it.

What such an example shows is there or not, by chance. So it is a mistake of the document, whatever was seen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["is_handle", "unwaited"]

_WAITS = re.compile(r"(?<!def )\b(?:wait|synchronize)\w*\(")


def unwaited(names: Mapping[str, Any], sources: Iterable[str]) -> str | None:
    """Return which of *names* holds a handle, where none of the *sources* that have run waits for anything; else None."""
    if any(map(_WAITS.search, sources)):
        return None
    return next((name for name, value in names.items() if not name.startswith("_") and _holds_handle(value)), None)


def _holds_handle(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(is_handle, value))
    return is_handle(value)


def is_handle(value: Any) -> bool:
    """Tell whether *value* has a ``wait()`` that needs no argument: a store's needs the keys to wait for."""
    wait = None if inspect.isclass(value) or inspect.ismodule(value) else getattr(value, "wait", None)
    try:
        return callable(wait) and inspect.signature(wait).bind() is not None
    except (TypeError, ValueError):
        return False
