"""All nodes of a module, by their type, without the slow visits of LibCST: it makes each node anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import TypeVar

import libcst as cst

_Owner = cst.ClassDef | cst.FunctionDef | cst.Lambda | None
_LAYOUT = (
    cst.BaseParenthesizableWhitespace,
    cst.Comma,
    cst.EmptyLine,
    cst.LeftParen,
    cst.RightParen,
    cst.TrailingWhitespace,
)
_Node = TypeVar("_Node", bound=cst.CSTNode)


class Nodes:
    """The nodes below *module*, layout left out."""

    def __init__(self, module: cst.Module) -> None:
        self._by_type: Mapping[type[cst.CSTNode], list[tuple[cst.CSTNode, _Owner]]] = defaultdict(list)
        self._add(module)

    def of(self, kind: type[_Node]) -> Iterator[tuple[_Node, _Owner]]:
        """Yield the nodes of this very type, outer ones first, each with the class, function or lambda around it."""
        yield from self._by_type.get(kind, ())  # type: ignore[misc]  # by their type

    def _add(self, module: cst.Module) -> None:
        waiting: list[tuple[cst.CSTNode, _Owner]] = [(module, None)]
        by_type = self._by_type
        while waiting:
            node, owner = waiting.pop()
            by_type[type(node)].append((node, owner))
            if isinstance(node, (cst.ClassDef, cst.FunctionDef, cst.Lambda)):
                owner = node
            found: list[tuple[cst.CSTNode, _Owner]] = []
            for name in _parts(type(node)):
                value = getattr(node, name)
                if isinstance(value, cst.CSTNode):
                    if not isinstance(value, _LAYOUT):
                        found.append((value, owner))
                elif isinstance(value, (list, tuple)):
                    found += [
                        (each, owner)
                        for each in value
                        if isinstance(each, cst.CSTNode) and not isinstance(each, _LAYOUT)
                    ]
            found.reverse()
            waiting += found


@cache
def _parts(kind: type[cst.CSTNode]) -> Sequence[str]:
    """Return the fields of a type of node in which other nodes are."""
    without = ("lpar", "rpar", "header", "footer", "leading_lines", "lines_after_decorators", "comma")
    return [each.name for each in fields(kind) if each.name not in without and "whitespace" not in each.name]
