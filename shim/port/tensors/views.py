"""Parts of a tensor that a collective writes into: torch's ``split`` and ``chunk`` give views, and other frameworks' copies."""

from __future__ import annotations

import libcst as cst

from shim.port.correspondences import rows_with
from shim.port.rules import Port
from shim.port.tensors.kinds import TensorKinds

__all__ = ["views_of"]


def views_of(port: Port, kinds: TensorKinds) -> set[cst.CSTNode]:
    """Return the calls whose parts of a tensor a collective gets as outputs."""
    found: set[cst.CSTNode] = set()

    class Views(cst.CSTVisitor):
        def visit_Call(self, node: cst.Call) -> None:
            name = port.file.imported(node.func) if isinstance(node.func, (cst.Name, cst.Attribute)) else None
            for _, form in rows_with(name, port.plan.source) if name is not None else ():
                for position, argument in enumerate(node.args):
                    keyword = argument.keyword
                    known = form.parameters[position : position + 1] if keyword is None else [form.named(keyword.value)]
                    if any(parameter is not None and parameter.role == "outputs" for parameter in known):
                        found.update(_parts(port, kinds, argument.value))

    port.file.module.visit(Views())
    return found


def _parts(port: Port, kinds: TensorKinds, value: cst.BaseExpression) -> list[cst.Call]:
    """Return the calls that make the list *value*, or that it is assigned."""
    values = port.file.values_of(value) or () if isinstance(value, cst.Name) else [value]
    calls = []
    for each in values:
        if isinstance(each, cst.Call) and port.file.code(each.func) in ("list", "tuple") and each.args:
            each = each.args[0].value
        if isinstance(each, cst.Call) and kinds.of(each) == "tensors":
            calls.append(each)
    return calls
