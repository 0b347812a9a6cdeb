"""Writes an expression by a template: text with places in braces, in which parts of the expression stay."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from shim.port.rules.port import Port

_PLACE = re.compile(r"\{\w+\}")


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
