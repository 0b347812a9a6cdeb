"""Tells comments that show a value from remarks, beside code that is not there to show anything: assignments and calls.

``y = torch.ones(2)  # tensor([1., 1.])`` shows the value; ``group = new_group([0, 1])  # [0, 1]`` and ``x = f()  # 1`` may say anything.
"""

from __future__ import annotations

import math
import re
from typing import Any

from shim.conformance.examples.reading.printed_values import contains_tensor

_SHAPE = re.compile(r"(?P<size>torch\.Size\(\[[\d, ]*\]\))|\((?:\d+,|\d+(?:, ?\d+)+,?)?\)")
_WRITTEN_TENSOR = re.compile(r"(?:tensor|array)\(", re.IGNORECASE)
_BRACKETS = re.compile(r"[\[\s]*")
_ITEM = re.compile(r"[^\[\],\s]+")


def shows(text: str, value: Any) -> bool:
    """Tell whether *text* shows a value such as *value*.

    It is written as a tensor or array and *value* is one, or a collection; or it is a list with the dimensions and as many numbers as *value* has.
    """
    shape = _shape_of(value)
    if contains_tensor(text):
        return shape is not None if _WRITTEN_TENSOR.match(text) else isinstance(value, (list, tuple, dict))
    brackets = _BRACKETS.match(text)
    depth = brackets[0].count("[") if brackets else 0
    return bool(shape) and depth == len(shape or ()) and len(_ITEM.findall(text)) == math.prod(shape or ())


def may_be_result(text: str, value: Any) -> bool:
    """Tell whether *text* shows a value such as *value*, which a call has returned, and which may be a collection of anything."""
    return shows(text, value) or (text.startswith(("[", "(", "{")) and isinstance(value, (list, tuple, dict, set)))


def shape_shown(text: str, value: Any) -> str | None:
    """Return the shape of *value* as *text* would write it, None where *text* is no shape of so many dimensions.

    A shape is written ``(2, 3)`` or ``torch.Size([2, 3])``; ``[2]`` may be elements, and ``(2)`` the number of a step.
    """
    shape, shown = _shape_of(value), _SHAPE.fullmatch(text)
    if shape is None or shown is None:
        return None
    if len(sizes := tuple(map(int, re.findall(r"\d+", text)))) != len(shape) and not shown["size"]:
        return None
    return text if sizes == shape else str(shape)


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor or array, None for anything else."""
    try:
        return tuple(map(int, value.shape))
    except (AttributeError, TypeError, ValueError):
        return None
