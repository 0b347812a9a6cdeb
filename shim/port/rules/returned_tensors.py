"""Calls that return a new tensor, where the target's fill one: the tensor is made in a statement before the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from shim.port.correspondences.returning import Primitive, Returning
from shim.port.correspondences.table import Form, forms_of
from shim.port.plan import Left
from shim.port.reading.source_file import below
from shim.port.rules.arguments import port_arguments
from shim.port.rules.port import Port
from shim.port.rules.remarks import left_without
from shim.port.rules.rewriting import Given, Rewriting, bind

STATEMENT = "needs-a-statement"


@dataclass(frozen=True)
class _Places:
    """What the statement does with the call: ``result`` is the code that names the tensor, ``before`` and ``after`` stand round the ported call."""

    result: str
    before: str
    after: str


def port_returning(port: Port, node: cst.Call, source: Returning, spell: Callable[[str], str]) -> str:
    """Port the call *node* of *source*'s function, and return the target's function. Raises Left, and changes nothing, where it cannot."""
    forms = forms_of(source.row, port.plan.target)
    if not forms:
        raise left_without(port, source.form.name)
    given = bind(port, node.args, source.form)
    places = _places(port, node, source)
    values = {each.parameter.role: each.value for each in given}
    tensor = values.get("tensor", values.get("input"))
    if tensor is None:
        raise Left("unknown-argument", f"{source.form.name} is called without a tensor", "Check the call.")
    _check(port, source, given, tensor, places.result)
    made = _made(port, source).format(
        input=_bracketed(port, tensor),
        size=f"{spell(forms_of('size', port.plan.target)[0].name)}({_group(port, values)})" if "{size}" in source.made else "",
        shape=_shape(port, values.get("output")),
    )  # fmt: skip
    statement = port.statement
    assert statement is not None
    rewriting = Rewriting(port, node, node.args, given, source.form, forms[0], spell)
    port_arguments(rewriting, result=(source.result, places.result))
    report_no_gradient(port, node, source, forms[0])
    port.insert_before(f"{places.result} = {made}")
    start, end = port.file.span(statement.body[0])
    first, last = port.file.span(node)
    port.edits.replace(start, first, places.before)
    port.edits.replace(last, end, port.file.indented(start, ["", places.after]) if places.after else "")
    return forms[0].name


def report_no_gradient(port: Port, node: cst.Call, source: Returning | Primitive, target: Form) -> None:
    if source.has_gradient:
        why = f"gradients go through {source.form.name}, and not through {target.name}"
        advice = "If one has to, write a function whose backward calls the collective that it needs."
        port.changed(node, "no-gradient", why, advice)


def _places(port: Port, node: cst.Call, source: Returning) -> _Places:
    """Return how the statement uses what the call returns. Raises Left where it is no statement that can be taken apart."""
    statement = port.statement
    if statement is not None and len(statement.body) == 1:
        small = statement.body[0]
        value = small.value if isinstance(small, (cst.Assign, cst.Return)) else None
        is_first = isinstance(value, cst.Subscript) and value.value is node and port.file.code(value).endswith("[0]")
        takes_tensor = is_first if source.with_handle else value is node
        if isinstance(small, cst.Return) and takes_tensor:
            name = port.new_name("result")
            return _Places(name, "", f"return {name}")
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target = small.targets[0].target
            if takes_tensor and isinstance(target, (cst.Name, cst.Attribute)):
                return _Places(port.file.code(target), "", "")
            if source.with_handle and value is node and isinstance(target, cst.Tuple) and len(target.elements) == 2:
                result, handle = (port.file.code(each.value) for each in target.elements)
                if all(isinstance(each.value, cst.Name) for each in target.elements):
                    return _Places(result, "" if handle == "_" else f"{handle} = ", "")
    raise Left(
        STATEMENT,
        "the target needs a statement before this call, in which the tensor for the result is made",
        "Assign what the call returns to names of its own, and port again.",
    )


def _check(port: Port, source: Returning, given: list[Given], tensor: cst.BaseExpression, result: str) -> None:
    """Raise Left where the statement before the call would change what the call's arguments mean."""
    twice = "{input}.shape" in source.made or source.result == "output"
    shape = next((each.value for each in given if each.parameter.role == "output"), None)
    copied = [each for each in (tensor, shape) if each is not None and (twice or port.plan.scope == "statements")]
    if not all(
        isinstance(each, (cst.Name, cst.Attribute))
        for each in copied
        if each is tensor or port.plan.scope == "statements"
    ):
        raise Left(
            STATEMENT,
            "the target needs the arguments in a statement before the call, too",
            "Keep them in variables, and port again.",
        )
    moved = [tensor, *(each.value for each in given if each.parameter.role in ("output", "group"))]
    rest = [each.value for each in given if each.value is not tensor or twice]
    if any(uses_api(port, each) for each in moved) or any(result in _names(port, each) for each in rest):
        raise Left(
            STATEMENT,
            f"the target needs {result} before the call, whose arguments have to be known by then",
            "Keep the arguments in variables of their own, and port again.",
        )


def _made(port: Port, source: Returning) -> str:
    """Return how the result is made, by methods of the tensors that the ported function has."""
    if port.plan.scope == "collectives":
        return source.made
    if port.plan.target == "paddle_2" and ".new_zeros" in source.made:
        raise Left(
            "no-equivalent",
            "tensors of Paddle 2 have no new_zeros, by which the tensor for the result could be made",
            "Make it with paddle.zeros before the call, and call the function that fills it.",
        )
    return source.made.replace(".copy()", ".clone()")


def _names(port: Port, value: cst.CSTNode) -> set[str]:
    """Return the variables and attributes that are in *value*."""
    return {port.file.code(each) for each in below(value) if isinstance(each, (cst.Name, cst.Attribute))}


def uses_api(port: Port, value: cst.CSTNode) -> bool:
    """Tell whether names of the API are in *value*, other than one that is all of it."""
    if port.file.imported(value) is not None:
        return False
    return any(port.source.is_collective(port.file.imported(each) or "") for each in below(value))


def _bracketed(port: Port, value: cst.BaseExpression) -> str:
    code = port.file.code(value)
    return code if isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) else f"({code})"


def _group(port: Port, values: dict[str, cst.BaseExpression]) -> str:
    group = values.get("group")
    return "" if group is None or port.file.imported(group) is not None else port.file.code(group)


def _shape(port: Port, value: cst.BaseExpression | None) -> str:
    """Return the code of a shape, which may be given as a tensor that has it."""
    if value is None:
        return ""
    code = port.file.code(value)
    is_shape = isinstance(value, (cst.Tuple, cst.List)) or code.endswith(".shape")
    return (f"({code})" if isinstance(value, cst.Tuple) else code) if is_shape else f'getattr({code}, "shape", {code})'
