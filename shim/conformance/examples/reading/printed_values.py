"""Which texts are values as Python prints them, and which comments show a value.

Numbers, tensors and collections of these are values, said of every rank or of each. Beside code that is not there to show anything, assignments
and calls, a comment may be a remark: ``y = torch.ones(2)  # tensor([1., 1.])`` shows the value; ``group = new_group([0, 1])  # [0, 1]`` and
``x = f()  # 1`` may say anything.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

_NUMBERS = re.compile(r"[\[(](?:[\[\]()\d\s.,+\-eEj]|nan|inf)*[\])]")  # of NumPy's arrays, which have no commas
_TENSORS = frozenset({"tensor", "Tensor", "array", "Size"})
_TENSOR = re.compile(r"(?<![\w.])(?:[tT]ensor\(\s*(?:\[|-?\d|shape=)|array\(\s*\[)")
_RANKS = r"ranks? (\d+(?:(?:, ?| and | & )\d+)*)"
_BEFORE = re.compile(
    rf"(?<!\S)\(?(?:on |for |and )*{_RANKS}\)?\s*(?:[:=]|[-=]>|\b(?:prints|shows|gets|has|sees|gives)\b)", re.IGNORECASE
)
_AFTER = re.compile(rf"(?:\(?\b(?:on|for) |\(|# ?)?\b{_RANKS}\)?(?=$|[\s,;|/])", re.IGNORECASE)
_OUTPUT = re.compile(r"(?:(?:the|expected|outputs?|out|prints?|results?|of|with|process)(?:\s+|$))*", re.IGNORECASE)
_EVERYWHERE = re.compile(
    r"(?:\((?:on |for |in )?|\b(?:on|for|in) )(?:all|every|each|both|any)(?: (?:the )?\w+)?\)?$", re.IGNORECASE
)
_LONGEST = 10_000  # characters of a value


def value_in(text: str) -> str | None:
    """Return the value that *text* is, None where it is none. Where ranks have different ones, each stands on a line: ``rank 0: 1``."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    for alike in (text, text.removesuffix(".")):
        anywhere = _EVERYWHERE.search(alike)
        one = alike[: anywhere.start()].rstrip().rstrip(",;").rstrip() if anywhere else alike
        if is_value(one):
            return one
        if of_ranks := _of_ranks(alike):
            return "\n".join(f"rank {ranks}: {value}" for ranks, value in of_ranks)
    return None


def _of_ranks(text: str) -> list[tuple[str, str]]:
    """Return the values that *text* says of ranks, in front of the values or after them; none where anything else is in it."""
    if "rank" not in text.lower():
        return []
    begin, *parts = _BEFORE.split(text)
    if parts:
        ranks, values = parts[::2], parts[1::2]
    else:
        *parts, begin = _AFTER.split(text)
        values, ranks = parts[::2], parts[1::2]
    values = [_without_joints(value) for value in values]
    return (
        list(zip(ranks, values, strict=True)) if _OUTPUT.fullmatch(begin.strip()) and all(map(is_value, values)) else []
    )


def _without_joints(value: str) -> str:
    """Return *value* without what joins it to those of other ranks."""
    value = value.strip().strip(",;|/").strip()
    return value.removeprefix("and ").removesuffix(" and").strip()


def contains_tensor(text: str) -> bool:
    """Tell whether a tensor as it is printed, or the begin of one, is anywhere in *text*."""
    return _TENSOR.search(text) is not None


def is_value(text: str) -> bool:
    """Tell whether *text* is a number, a tensor, or a collection of these, as they are printed."""
    if len(text) > _LONGEST:
        return False
    if _NUMBERS.fullmatch(text):
        return "..." not in text
    try:
        return _is_printed(ast.parse(text, mode="eval").body, inside=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two of text that is nested too deeply
        return False


def _is_printed(node: ast.expr | None, inside: bool = True) -> bool:
    """Tell whether *node* is a value as it is printed, *inside* a collection or not: texts have no quotes outside one."""
    match node:
        case ast.Constant(value=value):
            return value is not ... and (inside or not isinstance(value, (str, bytes)))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant() | ast.Name() as number):
            return _is_printed(number, inside=False)
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=real, right=ast.Constant(value=complex())):
            return _is_printed(real, inside=False)
        case ast.List(elts=entries) | ast.Tuple(elts=entries) | ast.Set(elts=entries):
            return all(map(_is_printed, entries))
        case ast.Dict(keys=keys, values=values):
            return all(map(_is_printed, keys)) and all(map(_is_printed, values))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _TENSORS
        case ast.Name(id=name):
            return name in ("nan", "inf")
    return False


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
