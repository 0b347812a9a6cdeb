"""Members by their templates: the expressions that stand in a template's places, and the text that takes the place of an expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import libcst as cst

from shim.port.plan import Left
from shim.port.reading.expressions import is_closed, literal_of
from shim.port.reading.source_file import below
from shim.port.rules.port import Port

_PLACE = re.compile(r"\{\w+\}")
_FUNCTION = re.compile(r"(?P<name>[\w.]+)\((?P<arguments>\{[^)]*)\)")
_DOTTED = re.compile(r"\b(?:mindspore|paddle|torch)(?:\.\w+)+")
_METHOD = re.compile(r"\{\w+\}\.(?P<name>\w+)\((?P<arguments>[^)]*)\)(?P<after>\.values)?")
_KEYWORDS = {"axis": ("axis", "dim"), "dtype": ("dtype",), "other": ("other", "src", "y"), "rank": ("rank",)}


def matched(port: Port, template: str, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """Return the expressions that *node* has in the places of *template*, first what has the member; None where it is not written so.

    Whether the first expression is a group or a tensor is not looked at.
    """
    if "(" not in template:
        is_member = isinstance(node, cst.Attribute) and template.endswith(f"}}.{node.attr.value}")
        return [cst.ensure_type(node, cst.Attribute).value] if is_member else None
    if (function := _FUNCTION.fullmatch(template)) is not None:
        if isinstance(node, cst.Call) and port.file.imported(node.func) == function["name"]:
            return _in_places(port, function["arguments"], node.args, named=True)
        return None
    method = _METHOD.fullmatch(template)
    if method is None:
        return None
    if method["after"]:
        if not (isinstance(node, cst.Attribute) and node.attr.value == "values"):
            return None
        node = node.value
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)):
        return None
    parts = _in_places(port, method["arguments"], node.args) if node.func.attr.value == method["name"] else None
    return None if parts is None else [node.func.value, *parts]


def _in_places(
    port: Port, template: str, arguments: Sequence[cst.Arg], *, named: bool = False
) -> list[cst.BaseExpression] | None:
    """Return the values of *arguments* that stand in the places of *template*, None where they are others, or lack a name of it and have to be *named*."""
    written = [place for place in template.split(", ") if place]
    if named and any("=" in place and each.keyword is None for place, each in zip(written, arguments, strict=False)):
        return None
    places = [place.partition("=")[2] or place for place in template.split(", ") if place]
    if len(places) != len(arguments):
        return None
    if any(place.startswith("{") and not _PLACE.fullmatch(place) for place in places):
        return None  # what is written, and not read
    for place, argument in zip(places, arguments, strict=True):
        if not place.startswith("{"):
            if literal_of(port.file.code(argument.value)) != place:
                return None
        elif argument.star or (
            argument.keyword is not None and argument.keyword.value not in _KEYWORDS.get(place.strip("{}"), ())
        ):
            return None
    return [each.value for each, place in zip(arguments, places, strict=True) if place.startswith("{")]


def spelled(text: str, spell: Callable[[str], str]) -> str:
    """Return *text* with the frameworks' full names in it as *spell* writes them."""
    return _DOTTED.sub(lambda found: spell(found[0]), text)


def write_member(
    port: Port, node: cst.CSTNode, template: str, parts: Sequence[cst.BaseExpression], spell: Callable[[str], str]
) -> None:
    """Write *node* by *template*, with *parts* in its places: in brackets where they need them, functions' names as *spell* writes them.

    A part that stands twice is written as it is in the source. Raises Left, and changes nothing, where it calls something.
    """
    template = spelled(template, spell)
    places = dict(zip(dict.fromkeys(_PLACE.findall(template)), parts, strict=False))
    for place, part in places.items():
        if _is_beside(template, place) and not is_closed(
            part, cst.Integer
        ):  # a number has changed places with the group
            template = template.replace(place, f"({place})")
    twice = {place: part for place, part in places.items() if template.count(place) > 1}
    for part in twice.values():
        is_pair = isinstance(part, cst.Attribute) and port.tensors.of(part.value) == "pair"
        if any(is_pair or isinstance(each, cst.Call) for each in (part, *below(part))):
            why = f"{port.file.code(part)} would be computed twice"
            raise Left("computed-twice", why, "Keep it in a variable, and port again.")
    for place, part in twice.items():
        start, end = port.file.outer_span(part)
        template = template.replace(place, port.file.text[start:end].decode())
        port.done |= {part, *below(part)}
    write_template(port, node, template, [part for place, part in places.items() if place not in twice])


def _is_beside(template: str, place: str) -> bool:
    """Tell whether an operator or a member stands beside the *place*."""
    return re.search(rf"{re.escape(place)}(\.|\[| [^,])|[^(,=] {re.escape(place)}", template) is not None


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
