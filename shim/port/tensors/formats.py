"""Formats of tensors in strings: MindSpore refuses them, where others format the number that the tensor holds."""

from __future__ import annotations

import libcst as cst

from shim.port.tensors.arguments import Context
from shim.port.tensors.remarks import report_unknown

_SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def port_format(context: Context, node: cst.FormattedStringExpression) -> None:
    """Format the number in a tensor for which *node* has a format; a tensor with a format holds a single one."""
    port, value = context.port, node.expression
    if port.target.framework != "mindspore" or port.source.framework == "mindspore":
        return
    if not node.format_spec or node.conversion is not None or context.kinds.of(value) != "tensor":
        return
    if node.equal is not None:
        report_unknown(port, value, f"a format with = of {port.file.code(value)}, a tensor,")
        return
    start, end = port.file.outer_span(value)
    if not isinstance(value, _SIMPLE) and not value.lpar:
        port.edits.insert(start, "(")
        port.edits.insert_after(end, ").item()")
    else:
        port.edits.insert_after(end, ".item()")
    port.places += 1
