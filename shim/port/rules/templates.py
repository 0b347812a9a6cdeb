"""Members by their templates: the expressions that stand in a template's places, and the text that takes the place of an expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import libcst as cst

from shim.port.reading.expressions import is_closed, literal_of
from shim.port.rules.port import Port

_PLACE = re.compile(r"\{\w+\}")
_FUNCTION = re.compile(r"(?P<name>[\w.]+)(?P<rest>\(\{.*)")
_METHOD = re.compile(r"\{\w+\}\.(?P<name>\w+)\((?P<arguments>[^)]*)\)(?P<after>\.values)?")
_KEYWORDS = {"axis": ("axis", "dim"), "dtype": ("dtype",), "other": ("other", "src"), "rank": ("rank",)}


def matched(port: Port, template: str, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """Return the expressions that *node* has in the places of *template*, first what has the member; None where it is not written so.

    Whether the first expression is a group or a tensor is not looked at.
    """
    if "(" not in template:
        is_member = isinstance(node, cst.Attribute) and template.endswith(f"}}.{node.attr.value}")
        return [cst.ensure_type(node, cst.Attribute).value] if is_member else None
    if (function := _FUNCTION.fullmatch(template)) is not None:
        is_called = isinstance(node, cst.Call) and len(node.args) == 1 and not node.args[0].star
        call = cst.ensure_type(node, cst.Call) if is_called else None
        return [call.args[0].value] if call and port.file.imported(call.func) == function["name"] else None
    method = _METHOD.fullmatch(template)
    if method is None:
        return None
    if method["after"]:
        if not (isinstance(node, cst.Attribute) and node.attr.value == "values"):
            return None
        node = node.value
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)):
        return None
    places = [place.partition("=")[2] or place for place in method["arguments"].split(", ") if place]
    if node.func.attr.value != method["name"] or len(places) != len(node.args):
        return None
    for place, argument in zip(places, node.args, strict=True):
        if not place.startswith("{"):
            if literal_of(port.file.code(argument.value)) != place:
                return None
        elif argument.star or (
            argument.keyword is not None and argument.keyword.value not in _KEYWORDS[place.strip("{}")]
        ):
            return None
    given = zip(node.args, places, strict=True)
    return [node.func.value, *(each.value for each, place in given if place.startswith("{"))]


def write_member(
    port: Port, node: cst.CSTNode, template: str, parts: Sequence[cst.BaseExpression], spell: Callable[[str], str]
) -> None:
    """Write *node* by *template*, with *parts* in its places: in brackets where the first needs them, a function's name as *spell* writes it."""
    place = _PLACE.findall(template)[0]
    if (function := _FUNCTION.fullmatch(template)) is not None:
        template = spell(function["name"]) + function["rest"]
    elif not is_closed(parts[0], cst.Integer):  # a number has changed places with the group
        template = template.replace(place, f"({place})", 1)
    if template.count(place) > 1:
        port.edits.replace(*port.file.span(node), template.replace(place, port.file.code(parts[0])))
        port.done.add(parts[0])
        port.places += 1
    else:
        write_template(port, node, template, parts)


def write_template(port: Port, node: cst.CSTNode, template: str, parts: Sequence[cst.BaseExpression]) -> None:
    """Replace all of *node* but its *parts*, which go into the template's places in their order."""
    texts, (at, end) = _PLACE.split(template), port.file.span(node)
    for text, part in zip(texts, parts, strict=False):
        first, last = port.file.outer_span(part)
        _replace(port, at, first, text)
        at = last
    _replace(port, at, end, texts[-1])
    port.places += 1


def _replace(port: Port, start: int, end: int, text: str) -> None:
    if port.file.text[start:end].decode() != text:
        port.edits.replace(start, end, text)
