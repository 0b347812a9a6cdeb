"""Objects of MindSpore's primitives: a function that does the same takes the place of each, defined once in a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import ClassScope

from shim.port.correspondences.names import name_for
from shim.port.correspondences.returning import Primitive
from shim.port.correspondences.table import Form, Parameter, forms_of
from shim.port.plan import Left
from shim.port.reading.expressions import literal_of
from shim.port.reading.source_file import first_name
from shim.port.rules.groups import check_group, is_world
from shim.port.rules.port import Port
from shim.port.rules.remarks import left_without
from shim.port.rules.returned_tensors import STATEMENT, report_no_gradient, uses_api
from shim.port.rules.rewriting import Given, bind

_Spell = Callable[[cst.BaseExpression, str], str]  # how to write a name of the target in place of an expression
_SUM = "torch.distributed.ReduceOp.SUM"


@dataclass
class _Function:
    """The function for the objects of one primitive. ``uses`` has for each what it was made with, by role."""

    name: str
    source: Primitive
    target: Form
    first: cst.Call
    uses: list[dict[str, str]] = field(default_factory=list)


class Primitives:
    """Ports the file's objects of primitives, and writes the functions for them at last."""

    def __init__(self, port: Port, spell: _Spell) -> None:
        self._port, self._spell = port, spell
        self._functions: dict[str, _Function] = {}

    def port(self, node: cst.Call, source: Primitive) -> None:
        """Port *node*, which makes an object of *source*. Raises Left, and changes nothing, where it cannot."""
        port, forms = self._port, forms_of(source.row, self._port.plan.target)
        if not forms:
            raise left_without(port, source.form.name)
        if port.plan.scope == "statements" and source.takes:
            raise Left(
                "no-equivalent",
                f"the source does not show whose tensors the object of {source.form.name} is called with",
                "Port with --scope collectives first, or call the function in place of the object.",
            )
        self._check_place(node)
        if _has_members_used(port, node):
            raise Left(
                "no-equivalent",
                f"the program uses more of the object of {source.form.name} than to call it",
                "Take out what sets attributes such as add_prim_attr, which are for MindSpore's compiler, and port again.",
            )
        given = bind(port, node.args, source.form)
        values = {each.parameter.role: _text(port, node.func, each, self._spell) for each in given}
        kept = {role: text for role, text in values.items() if text != "None"}
        partial = port.standard_module("functools") if kept else ""
        assert partial is not None  # the module's own import is there
        function = self._functions.get(source.row)
        if function is None:
            name = port.new_name(source.row.removesuffix("_whole"))
            function = self._functions[source.row] = _Function(name, source, forms[0], node)
            report_no_gradient(port, node, source, forms[0])
        function.uses.append(kept)
        arguments = "".join(f", {role}={text}" for role, text in kept.items())
        text = f"{partial}.partial({function.name}{arguments})" if kept else function.name
        port.edits.replace(*port.file.span(node), text)
        port.forget(node.func)
        port.places += 1

    def _check_place(self, node: cst.Call) -> None:
        """Raise Left where no function of the module can take the place of the object *node*."""
        port, first = self._port, first_name(node.func)
        imports = port.file.imports_of(first) if first is not None else []
        if not isinstance(port.file.scope(node.func), ClassScope) and any(
            each in port.file.always_run for each in imports
        ):
            return
        raise Left(
            STATEMENT,
            "the target needs a function of the module in place of this object",
            "Make the object outside of a class's body, import its class at the top of the file, and port again.",
        )

    def write(self) -> None:
        """Define the functions, below the import statement before the first that uses one."""
        file, newline = self._port.file, self._port.file.module.default_newline
        places: dict[int, list[str]] = {}
        for function in self._functions.values():
            use = file.span(function.first).start
            before = [node for node in self._port.first_imports if file.span(node).end < use]
            at = (file.text.find(b"\n", file.span(before[-1]).end) + 1) or len(file.text)
            places.setdefault(at, []).extend(["", "", *self._lines(function)])
        for at, lines in places.items():
            is_tight = file.text[at : at + 1] not in (b"\n", b"\r", b"")
            self._port.edits.insert(at, newline.join(lines) + newline * (3 if is_tight else 1))

    def _lines(self, function: _Function) -> list[str]:
        source, target, port = function.source, function.target, self._port
        roles = dict.fromkeys(role for use in function.uses for role in use)
        always = {role for role in roles if all(role in use for use in function.uses)}
        where = function.first.func
        defaults = {"group": "None", "group_root": "0"}
        if "op" in roles:
            sum_ = _SUM if port.plan.target == "torch" else name_for(_SUM, "torch", port.plan.target)
            defaults["op"] = self._spell(where, sum_ or _SUM)
        size = (
            f"{self._spell(where, forms_of('size', port.plan.target)[0].name)}({'group' if 'group' in roles else ''})"
        )
        given = [
            role if role in always else f"{role}={defaults[role]}"
            for role in sorted(roles, key=always.__contains__, reverse=True)
        ]
        parameters = ", ".join(filter(None, [source.takes, *given]))
        rest = ", ".join(filter(None, (self._argument(each, roles, always) for each in target.parameters)))
        separator = ", " if source.takes and rest else ""
        call = self._spell(where, target.name)
        body = [each.format(call=call, rest=separator + rest, size=size) for each in source.body]
        if port.plan.scope != "collectives" and port.target.framework != "mindspore":
            body = [each.replace(".copy()", ".clone()") for each in body]  # the tensors are the target's
        indent = port.file.module.default_indent
        return [f"def {function.name}({parameters}):", *(indent + each.replace("    ", indent) for each in body)]

    def _argument(self, parameter: Parameter, roles: dict[str, None], always: set[str]) -> str:
        """Return the argument for *parameter* of the target's function; empty where no object was made with it."""
        if parameter.role in roles:
            return f"{parameter.name}={parameter.role}"
        if parameter.role != "root" or "group_root" not in roles or self._port.target.framework == "torch":
            return ""
        if "group" not in roles:
            return f"{parameter.name}=group_root"
        inner = "group.ranks[group_root]"
        return f"{parameter.name}={inner if 'group' in always else f'{inner} if group else group_root'}"


def _has_members_used(port: Port, node: cst.Call) -> bool:
    """Tell whether the source uses a member of the object that *node* makes, at once or by what the statement assigns it to."""
    text, (_, end) = port.file.text, port.file.span(node)
    small = port.statement.body[0] if port.statement is not None else None
    targets = [each.target for each in small.targets] if isinstance(small, cst.Assign) and small.value is node else []
    names = [re.escape(port.file.code(target).encode()) for target in targets]
    return text[end:].lstrip().startswith(b".") or any(
        re.search(rb"(?<![\w.])" + name + rb"\.\w", text) for name in names
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
            raise Left(STATEMENT, f"{code} is more than a name", "Keep it in a variable, and port again.")
        if role == "op" and not port.is_op(value):
            raise Left("op-not-known", f"{code} may be an op in MindSpore's form", "Name one of ReduceOp here.")
        return code
    known = name_for(name, port.plan.source, port.plan.target)
    if known is None:
        port.done.add(value)
        raise left_without(port, name)
    port.forget(value)
    return spell(value if port.file.imported(value) is not None else function, known)
