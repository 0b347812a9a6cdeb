"""Objects of MindSpore's primitives: a function that does the same takes the place of each, defined in the statement before."""

from __future__ import annotations

import re
from collections.abc import Callable, Container

import libcst as cst
from libcst.metadata import ClassScope

from shim.port.correspondences import Parameter, forms_of, name_for
from shim.port.correspondences.returning import Primitive
from shim.port.plan import Left
from shim.port.rules.groups import check_group, is_world
from shim.port.rules.literals import literal_of
from shim.port.rules.port import Port
from shim.port.rules.remarks import left_without
from shim.port.rules.returned_tensors import uses_api
from shim.port.rules.rewriting import Given, bind

_STATEMENT = "needs-a-statement"


_Spell = Callable[[cst.BaseExpression, str], str]  # how to write a name of the target in place of an expression


def port_primitive(port: Port, node: cst.Call, source: Primitive, spell: _Spell) -> None:
    """Port *node*, which makes an object of *source*. Raises Left, and changes nothing, where it cannot."""
    forms = forms_of(source.row, port.plan.target)
    if not forms:
        raise left_without(port, source.form.name)
    if port.plan.scope == "statements" and source.takes:
        raise Left(
            "no-equivalent",
            f"the source does not show whose tensors the object of {source.form.name} is called with",
            "Port with --scope collectives first, or call the function in place of the object.",
        )
    _check_place(port, node)
    if _has_members_used(port, node):
        raise Left(
            "no-equivalent",
            f"the program uses more of the object of {source.form.name} than to call it",
            "Take out what sets attributes such as add_prim_attr, which are for MindSpore's compiler, and port again.",
        )
    target = forms[0]
    values = {each.parameter.role: _text(port, node.func, each, spell) for each in bind(port, node.args, source.form)}
    kept = {role: text for role, text in values.items() if text != "None"}
    rest = [_given(port, parameter, kept) for parameter in target.parameters]
    call = spell(node.func, target.name)
    size = f"{spell(node.func, forms_of('size', port.plan.target)[0].name)}({'group' if 'group' in kept else ''})"
    name = port.new_name(source.row.removesuffix("_whole"))
    parameters = ", ".join(filter(None, [source.takes, *(f"{role}={text}" for role, text in kept.items())]))
    arguments = ", ".join(filter(None, rest))
    separator = ", " if source.takes and arguments else ""
    body = [each.format(call=call, rest=separator + arguments, size=size) for each in source.body]
    indent = port.file.module.default_indent
    lines = [f"def {name}({parameters}):", *(indent + each.replace("    ", indent) for each in body), ""]
    assert port.statement is not None
    start = port.file.span(port.statement.body[0]).start
    port.edits.insert(start, port.file.indented(start, lines))
    port.edits.replace(*port.file.span(node), name)
    port.forget(node.func)
    port.places += 1
    if source.has_gradient:
        port.report(
            node,
            "changed",
            "no-gradient",
            f"gradients go through {source.form.name}, and not through {target.name}",
            "If one has to, write a function whose backward calls the collective that it needs.",
        )


def _has_members_used(port: Port, node: cst.Call) -> bool:
    """Tell whether the source uses a member of the object that *node* makes, at once or by what the statement assigns it to."""
    text, (_, end) = port.file.text, port.file.span(node)
    small = port.statement.body[0] if port.statement is not None else None
    targets = [each.target for each in small.targets] if isinstance(small, cst.Assign) and small.value is node else []
    names = [re.escape(port.file.code(target).encode()) for target in targets]
    return text[end:].lstrip().startswith(b".") or any(
        re.search(rb"(?<![\w.])" + name + rb"\.\w", text) for name in names
    )


def _given(port: Port, parameter: Parameter, kept: Container[str]) -> str:
    """Return the argument for *parameter* of the target's function, from what the object has *kept*; empty where it has nothing for it."""
    if parameter.role in kept:
        return f"{parameter.name}={parameter.role}"
    if parameter.role != "root" or "group_root" not in kept or port.target.framework == "torch":
        return ""
    if "group" not in kept:
        return f"{parameter.name}=group_root"
    return f"{parameter.name}=group.ranks[group_root]"


def _check_place(port: Port, node: cst.Call) -> None:
    """Raise Left where no function can be defined before the statement that *node* is in, or where it would be another thing there."""
    statement = port.statement
    if statement is not None:
        start, end = port.file.span(statement.body[0])
        first, last = port.file.span(node)
        scope = port.file.scope(node.func)
        alone = len(statement.body) == 1 and statement not in port.primitives
        is_inside = start <= first and last <= end and scope is port.file.scope(statement.body[0])
        if is_inside and alone and not isinstance(scope, ClassScope):
            port.primitives.add(statement)
            return
    raise Left(
        _STATEMENT,
        "the target needs a function in place of this object, defined in a statement before it",
        "Assign the object in a statement of its own, outside of a class's body, and port again.",
    )


def _text(port: Port, function: cst.BaseExpression, given: Given, spell: _Spell) -> str:
    """Return what is written for an argument of the constructor, *function*."""
    value, role = given.value, given.parameter.role
    name, code = port.file.imported(value), port.file.code(value)
    if role == "group" and is_world(port, value):
        port.forget(value)
        return "None"
    if role == "group":
        check_group(port, value)
    op = (literal_of(code) or "").strip("'").upper() if role == "op" else ""
    if name is None and op:
        name = f"mindspore.ops.ReduceOp.{op}"
    elif name is None:
        if uses_api(port, value):
            raise Left(_STATEMENT, f"{code} is more than a name", "Keep it in a variable, and port again.")
        if role == "op" and not port.is_op(value):
            raise Left("op-not-known", f"{code} may be an op in MindSpore's form", "Name one of ReduceOp here.")
        return code
    known = name_for(name, port.plan.source, port.plan.target)
    if known is None:
        port.done.add(value)
        raise left_without(port, name)
    port.forget(value)
    return spell(value if port.file.imported(value) is not None else function, known)
