"""Calls of a collective, also by functions of the API as values: in variables, in ``functools.partial``, in P2POp, in ``torch.multiprocessing.spawn``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from shim.port.correspondences.table import Form, form_for, forms_of, rows_with
from shim.port.glue import glue_form
from shim.port.plan import Left, Plan
from shim.port.reading.expressions import flag_of, is_list
from shim.port.reading.source_file import SourceFile
from shim.port.rules.arguments import port_arguments
from shim.port.rules.lists import before_call, wants_other_list
from shim.port.rules.partials import check_partial
from shim.port.rules.port import Port
from shim.port.rules.remarks import left_without, remark
from shim.port.rules.rewriting import Given, Rewriting, bind

# Rows whose calls go on in the background under another name.
_IN_BACKGROUND = {"send": "send_in_background", "receive": "receive_in_background"}


def port_call(
    port: Port,
    node: cst.Call,
    arguments: Sequence[cst.Arg],
    name: str,
    rows: Sequence[tuple[str, Form]],
    spell: Callable[[str], str],
) -> str:
    """Port the *arguments* of a call of the source's function *name*, and return the target's function. Raises Left, and changes nothing, where it cannot."""
    if all(form_for(row, form, port.plan.target) == replace(form, api=port.plan.target) for row, form in rows):
        return name  # the same function of another version
    row, source = _row_of(port, arguments, name, rows)
    given = bind(port, arguments, source)
    target = form_for(row, source, port.plan.target)
    if target is None and port.plan.onto == "native":
        target = glue_form(row, port.plan.target)
    if target is None:
        raise left_without(port, name)
    before = before_call(port, row, {each.parameter.role: each.value for each in given}, spell)
    if before is not None:
        port.check_statement(node)
    in_background = _in_background(port, given, row, target)
    rewriting = Rewriting(port, node, arguments, given, source, in_background or target, spell)
    if len(arguments) < len(node.args):
        rewriting.changes.append(lambda: check_partial(rewriting, name))
    port_arguments(rewriting, settled="background" if in_background is not None else "")
    if in_background is not None:
        return in_background.name
    if before is not None:
        port.insert_before(before)
    remark(port, node, row, source, target)
    return target.name


def _in_background(port: Port, given: Sequence[Given], row: str, target: Form) -> Form | None:
    """Return the function that goes on in the background, where the call asks for that and the target has a function of its own for it."""
    flag = next((each for each in given if each.parameter.role == "background"), None)
    if flag is None or row not in _IN_BACKGROUND or target.of_role("background") is not None:
        return None
    answer = flag_of(flag.value)
    if answer is None or answer is flag.parameter.inverted:
        return None
    return forms_of(_IN_BACKGROUND[row], port.plan.target)[0]


def _row_of(port: Port, arguments: Sequence[cst.Arg], name: str, rows: Sequence[tuple[str, Form]]) -> tuple[str, Form]:
    """Return the row that the call is of, by whether it gets lists or tensors where the function takes both."""
    if len(rows) == 1 or _are_one(rows, port.plan.target):
        return rows[0]
    for row, form in rows:
        given = bind(port, arguments, form)
        for each in given:
            if each.parameter.role in ("inputs", "outputs", "input", "output"):
                lists = _is_list(port, each)
                if lists is not None and each.parameter.role in ("inputs", "outputs") and lists:
                    return row, form
    for row, form in rows:
        for each in bind(port, arguments, form):
            if (
                each.parameter.role in ("output", "input")
                and _other_role(rows, row, each)
                and _is_list(port, each) is False
            ):
                return row, form
    raise Left(
        "tensor-or-list",
        f"{name} takes a tensor or a list of tensors, and the source does not show which this is",
        "The target has a function for each: write the one that fits.",
    )


def _are_one(rows: Sequence[tuple[str, Form]], target: str) -> bool:
    """Tell whether *target* has one function for all the rows, which takes a tensor or a list as the source's does."""
    forms = [forms_of(row, target) for row, _ in rows]
    return all(forms) and all(each[0].name == form.name for each, (_, form) in zip(forms, rows, strict=True))


def _other_role(rows: Sequence[tuple[str, Form]], row: str, given: Given) -> bool:
    """Tell whether another row takes a list where this one takes the tensor *given*."""
    return any(
        parameter.name == given.parameter.name and parameter.role == f"{given.parameter.role}s"
        for other, form in rows
        if other != row
        for parameter in form.parameters
    )


def _is_list(port: Port, given: Given) -> bool | None:
    value = given.value
    if isinstance(value, cst.Name):
        values = port.file.values_of(value)
        answers = {is_list(each) for each in values or ()} - {None}
        found = answers.pop() if len(answers) == 1 else None
    else:
        found = is_list(value)
    return _IS_LIST.get(port.tensors.of(value) or "") if found is None else found


_IS_LIST = {"tensor": False, "tensors": True, "list": True}


class Functions:
    """Knows the variables of *file* that hold functions of the API. The calls of those that are in one row are ported as calls of the function."""

    def __init__(self, file: SourceFile, plan: Plan) -> None:
        self._file = file
        self._plan = plan
        self.followed: set[cst.CSTNode] = set()
        for node, _ in file.nodes.of(cst.Call):  # the values of variables that are called
            if isinstance(node.func, cst.Name) and self.assigned_to(node.func) is not None:
                self.followed.update(file.values_of(node.func) or ())

    def assigned_to(self, variable: cst.Name) -> str | None:
        """Return the source's function that *variable* holds, or one of several that do the same with the same parameters; None where that is not certain."""
        if self._file.imported(variable) is not None:
            return None
        names = [
            self._file.imported(value)
            for value in self._file.values_of(variable) or ()
            if not isinstance(value, cst.Name) or value.value != "None"
        ]
        return self._agreed(names)

    def imported_in_several_ways(self, function: cst.CSTNode) -> str | None:
        """Return one of the source's functions that imports bind to *function*, as in try and except, if all do the same with the same parameters."""
        names = self._file.imports_meant(function)
        return self._agreed(names) if len(names) > 1 else None

    def _agreed(self, names: Sequence[str | None]) -> str | None:
        """Return the first of *names* if all are functions of one row with the same parameters."""
        rows = [rows_with(name, self._plan.source) if name else () for name in names]
        if not rows or any(len(each) != 1 for each in rows):
            return None
        return names[0] if len({(row, _roles(form)) for ((row, form),) in rows}) == 1 else None

    def partial_of(self, node: cst.Call) -> bool:
        """Tell whether *node* is a ``functools.partial`` of a function of the API."""
        called = self._file.code(node.func)
        if (
            called not in ("functools.partial", "partial")
            or not node.args
            or node.args[0].star
            or node.args[0].keyword is not None
        ):
            return False
        name = self._file.imported(node.args[0].value)
        return name is not None and bool(rows_with(name, self._plan.source))

    def may_be_value(self, port: Port, node: cst.CSTNode, source: Form, target: Form) -> bool:
        """Tell whether *target* can stand where *node* is *source*: its calls are ported, or mean the same as they are."""
        return node in self.followed or (_is_like(source, target) and not wants_other_list(port, target))


def _roles(form: Form) -> tuple[tuple[str, str, bool], ...]:
    return tuple((parameter.name, parameter.role, parameter.inverted) for parameter in form.parameters)


def _is_like(one: Form, other: Form) -> bool:
    """Tell whether a call of *one* by positions, of the parameters that both have, means the same to *other*."""
    shared = min(len(one.parameters), len(other.parameters))
    return [(each.role, each.inverted) for each in one.parameters[:shared]] == [
        (each.role, each.inverted) for each in other.parameters[:shared]
    ]


SPAWN = "torch.multiprocessing.spawn"
_SPAWN_NAMES = ("fn", "args", "nprocs", "join", "daemon")  # in their order, which is Paddle's, too
_COMMA = re.compile(rb"\s*,\s*")
_PADDLES = {"fn": "func"}


def port_spawn(port: Port, node: cst.Call, spell: Callable[[str], str]) -> str:
    """Port the call *node*, have its function ask for the rank, and return Paddle's function. Raises Left, and changes nothing, where it cannot."""
    given: dict[str, cst.Arg] = {}
    for position, argument in enumerate(node.args):
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if argument.star or (not keyword and position >= len(_SPAWN_NAMES)):
            raise left_without(port, SPAWN)
        given[keyword or _SPAWN_NAMES[position]] = argument
    if port.target.framework != "paddle" or not given.keys() <= {*_SPAWN_NAMES, "start_method"} or "fn" not in given:
        raise left_without(port, SPAWN)
    function = _spawned_function(port, given["fn"].value)
    rank = f"{spell(forms_of('rank', port.plan.target)[0].name)}()"
    _have_it_ask(port, function, rank)
    for name, argument in given.items():
        if argument.keyword is not None and name in _PADDLES:
            port.edits.replace(*port.file.span(argument.keyword), _PADDLES[name])
    if "nprocs" not in given:
        port.edits.insert_after(port.file.span(node.args[-1]).end, ", nprocs=1")
    return "paddle.distributed.spawn"


def _spawned_function(port: Port, value: cst.BaseExpression) -> cst.FunctionDef:
    """Return the file's own function that *value* names, if nothing else uses it and its first parameter can be taken out."""
    found = port.file.definition(value) if isinstance(value, cst.Name) and port.file.references(value) == 1 else None
    if (
        not isinstance(found, cst.FunctionDef)
        or found.decorators
        or not isinstance(found.body, cst.IndentedBlock)
        or found.params.posonly_params
        or not found.params.params
        or found.params.params[0].default is not None
    ):
        raise Left(
            "spawned-function",
            f"{SPAWN} passes the rank to {port.file.code(value)} first, and paddle.distributed.spawn does not",
            "Have it be a function of this file, used here alone, with a parameter for the rank; and port again.",
        )
    return found


def _have_it_ask(port: Port, function: cst.FunctionDef, rank: str) -> None:
    """Take the first parameter of *function* out, and have its body begin with asking for the *rank*."""
    parameter = function.params.params[0]
    start, end = port.file.span(parameter)
    if parameter.annotation is not None:
        end = port.file.outer_span(parameter.annotation.annotation).end
    comma = _COMMA.match(port.file.text, end)
    following = comma.end() if comma is not None else end
    port.edits.remove(start, following)
    body = function.body.body
    first = body[1] if len(body) > 1 and function.get_docstring() is not None else body[0]
    at = port.file.span(first).start
    port.edits.insert(at, port.file.indented(at, [f"{parameter.name.value} = {rank}", ""]))
