"""Lists of a call: those that only the root needs, which torch refuses on other ranks and MindSpore wants on every rank; and those that a call fills
in one framework and appends to in another: Paddle appends to an empty list of tensors, and to any list of objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType

import libcst as cst

from shim.port.correspondences.table import Form, forms_of, rows_with
from shim.port.plan import Left
from shim.port.reading.expressions import is_closed, is_list
from shim.port.rules.port import Port

_ROOTS = (cst.Name, cst.Integer, cst.Attribute, cst.BinaryOperation)  # a root that may be named twice
_ROLES = {"gather": "outputs", "gather_object": "objects", "scatter": "inputs"}


def is_for_root_only(form: Form, role: str) -> bool:
    """Tell whether the parameter with *role* is a list that only the root needs."""
    return _ROLES.get(form.name.rpartition(".")[2]) == role


def wants_other_list(port: Port, target: Form) -> bool:
    """Tell whether *target* has such a list, and may want another one than the source on the ranks that are not the root."""
    return port.between_frameworks and port.target.framework != "paddle" and target.name.rpartition(".")[2] in _ROLES


def to_wrap(
    port: Port, value: cst.BaseExpression, root: cst.BaseExpression | None, target: Form, spell: Callable[[str], str]
) -> tuple[str, str] | None:
    """Return what to write before and after *value*, so that the target takes it on every rank; None where nothing is needed."""
    if not port.between_frameworks:
        return None
    if port.target.framework == "mindspore" and target.name.endswith(("gather", "scatter")):
        return None if _always_list(port, value) else _bracketed(value, " or []")
    if port.target.framework == "torch" and not _only_on_root(port, value):
        if root is not None and not isinstance(root, _ROOTS):
            raise Left(
                "root-list",
                "the list is for the root alone, and the source does not name the root simply",
                "Keep the root in a variable, and port again.",
            )
        rank = f"{spell(forms_of('rank', port.plan.target)[0].name)}()"
        return _bracketed(value, f" if {rank} == {'0' if root is None else port.file.code(root)} else None")
    return None


def _bracketed(value: cst.BaseExpression, after: str) -> tuple[str, str]:
    return ("", after) if is_closed(value, cst.List, cst.ListComp) else ("(", f"){after}")


def _always_list(port: Port, value: cst.BaseExpression) -> bool:
    if isinstance(value, (cst.List, cst.ListComp)):
        return True
    if isinstance(value, cst.IfExp):
        return _always_list(port, value.body) and _always_list(port, value.orelse)
    if isinstance(value, cst.BooleanOperation) and isinstance(value.operator, cst.Or):
        return _always_list(port, value.right)
    return _all_values(port, value, _always_list)


def _only_on_root(port: Port, value: cst.BaseExpression) -> bool:
    """Tell whether *value* is a choice between a list and nothing, which the author made by the rank."""
    if isinstance(value, cst.IfExp):
        return _is_nothing(value.body) or _is_nothing(value.orelse)
    return _is_nothing(value) or _all_values(port, value, _only_on_root)


def _is_nothing(value: cst.BaseExpression) -> bool:
    return _is_none(value) or (isinstance(value, cst.List) and not value.elements)


def _all_values(port: Port, value: cst.BaseExpression, test: Callable[[Port, cst.BaseExpression], bool]) -> bool:
    values = port.file.values_of(value) if isinstance(value, cst.Name) else None
    return values is not None and all(not isinstance(each, cst.Name) and test(port, each) for each in values)


_KEPT = (cst.Name, cst.Attribute, cst.Subscript)
# By row: the role of the list that Paddle appends to.
_FILLED = {
    "all_gather": "outputs",
    "all_gather_object": "objects",
    "all_to_all": "outputs",
    "gather": "outputs",
    "scatter_object_list": "objects",
}
_RUN_ONCE = (cst.If, cst.With)
_COMPOUND = (*_RUN_ONCE, cst.Try, cst.For, cst.While, cst.FunctionDef, cst.ClassDef)


def before_call(
    port: Port, row: str, values: Mapping[str, cst.BaseExpression], spell: Callable[[str], str]
) -> str | None:
    """Return a statement to write before a call of *row*, so that its list has on the target what the call needs; None where it needs nothing.

    *values* are the call's arguments by role. Raises Left where the source does not show what the list has.
    """
    from_paddle, to_paddle = port.source.framework == "paddle", port.target.framework == "paddle"
    given = values.get(_FILLED.get(row, ""))
    if given is None or from_paddle == to_paddle:
        return None
    if to_paddle:
        return _emptied(port, given) if row == "all_gather_object" else None
    if row == "gather":
        given = _of_root(given)
    was_filled = isinstance(given, _KEPT) and _is_filled_before(port, given)
    empty = (None if row == "all_gather_object" else False) if was_filled else _is_empty(port, given)
    if empty:
        return _extended(port, row, given, values, spell)
    if row == "all_gather_object":
        raise _not_shown(port, given)
    if empty is None and not _is_none(given):
        port.changed(
            given,
            "list-may-be-empty",
            f"Paddle appends to {port.file.code(given)} if it is empty, and {port.target.framework} fills it",
            f"Have it hold {'a place' if row == 'scatter_object_list' else 'a tensor for each rank'} before the call.",
        )
    return None


def _of_root(value: cst.BaseExpression) -> cst.BaseExpression:
    """Return what *value*, a list for the root, is on the root: of a choice, what is not None."""
    if not isinstance(value, cst.IfExp):
        return value
    return _of_root(value.orelse if _is_none(value.body) else value.body)


def _is_none(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Name) and value.value == "None"


def _emptied(port: Port, given: cst.BaseExpression) -> str | None:
    """Return the statement that empties a list of objects, to which Paddle appends."""
    if isinstance(given, cst.Call) and _is_display(port, given) is None:
        raise _not_shown(port, given)
    return f"{port.file.code(given)}.clear()" if isinstance(given, _KEPT) else None


def _not_shown(port: Port, given: cst.BaseExpression) -> Left:
    return Left(
        "list-may-be-empty",
        f"Paddle appends to {port.file.code(given)}, others fill it, and the source does not show what it holds",
        "Have it hold a place for each rank before the call.",
    )


def _extended(
    port: Port,
    row: str,
    given: cst.BaseExpression,
    values: Mapping[str, cst.BaseExpression],
    spell: Callable[[str], str],
) -> str:
    name = port.file.code(given)
    if isinstance(given, _KEPT) and row == "scatter_object_list":
        return f"{name}.append(None)"
    group = port.file.code(values["group"]) if "group" in values and port.file.imported(values["group"]) is None else ""
    size = f"{spell(forms_of('size', port.plan.target)[0].name)}({group})"
    if isinstance(given, _KEPT) and row == "all_gather_object":
        return f"{name}.extend([None] * {size})"
    framework = port.file.framework
    tensor, root = values.get("inputs" if row == "all_to_all" else "input"), values.get("root")
    is_kept = isinstance(tensor, _KEPT) or (isinstance(tensor, cst.List) and row == "all_to_all")
    if framework is None or not isinstance(given, _KEPT) or not is_kept or not isinstance(root, (*_ROOTS, NoneType)):
        raise Left(
            "empty-list",
            f"Paddle appends to {name}, and {port.target.framework} fills it",
            f"Have it hold {'a place' if 'object' in row else 'a tensor for each rank'} before the call.",
        )
    assert tensor is not None
    like = f"{framework}.empty_like({{}})"
    if port.plan.scope != "collectives":  # whose tensors they are is decided later
        like = "{}.copy()" if port.plan.target == "mindspore" else "{}.clone()"
    if row == "all_to_all":
        each = port.new_name("each")
        return f"{name}.extend({like.format(each)} for {each} in {port.file.code(tensor)})"
    filled = f"{name}.extend({like.format(port.file.code(tensor))} for _ in range({size}))"
    if row == "all_gather":
        return filled
    rank = f"{spell(forms_of('rank', port.plan.target)[0].name)}()"
    assert port.statement is not None
    head = f"if {rank} == {'0' if root is None else port.file.code(root)}:"
    return port.file.indented(port.file.span(port.statement).start, [head, port.file.module.default_indent + filled])


def _is_empty(port: Port, value: cst.BaseExpression) -> bool | None:
    """Tell whether the list *value* of the call is empty, None where the source does not show that."""
    if not isinstance(value, _KEPT):
        return _is_display(port, value)
    shown = _before_in_block(port, value)
    if shown is not None or not isinstance(value, cst.Name):
        return shown if shown is not None else _is_never_empty(port, value)
    values = [each for each in port.file.values_of(value) or () if not isinstance(each, cst.Name)]
    answers = {_is_display(port, each) for each in values}
    answer = answers.pop() if len(answers) == 1 else None
    return None if answer and _is_in_a_loop_without(port, values) else answer


def _is_display(port: Port, value: cst.BaseExpression) -> bool | None:
    """Tell whether *value* makes an empty list."""
    if isinstance(value, cst.NamedExpr):
        return _is_display(port, value.value)
    if isinstance(value, cst.List):
        return not value.elements
    if isinstance(value, cst.Call):
        return True if port.file.code(value) == "list()" else (False if is_list(value) else None)
    if isinstance(value, cst.IfExp):  # on some ranks alone
        answers = {_is_display(port, each) for each in (value.body, value.orelse) if not _is_none(each)}
        return answers.pop() if len(answers) == 1 else None
    return False if isinstance(value, (cst.ListComp, cst.BinaryOperation)) else None


def _is_filled_before(port: Port, value: cst.BaseExpression) -> bool:
    """Tell whether the last statement before the call that names *value* is another call of the API, which gets it."""
    before, code = _last_naming(port, value), port.file.code(value)
    small = before.body[-1] if isinstance(before, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
    if not isinstance(call, cst.Call) or not rows_with(port.file.imported(call.func) or "", port.plan.source):
        return False
    return any(port.file.code(each.value) == code for each in call.args)


def _last_naming(port: Port, value: cst.BaseExpression) -> cst.CSTNode | None:
    """Return the last statement before the call that names *value*, if it always runs before."""
    code = port.file.code(value)
    named = code if not isinstance(value, cst.Subscript) else port.file.code(value.value)
    word = re.compile(rf"(?<![\w.]){re.escape(named)}(?!\w)")
    before = _before(port, port.statement)
    while before is not None and word.search(port.file.code(before)) is None:
        before = _before(port, before)
    return before


def _before_in_block(port: Port, value: cst.BaseExpression) -> bool | None:
    """Tell what the last statement before the call that names *value* makes of it, if that is a list and always runs before."""
    before, code = _last_naming(port, value), port.file.code(value)
    small = before.body[-1] if isinstance(before, cst.SimpleStatementLine) else None
    if isinstance(small, cst.Expr) and port.file.code(small.value) == f"{code}.clear()":
        return True
    for target, assigned in _assigned(small) if isinstance(small, cst.Assign) else ():
        if port.file.code(target) == code:
            return _is_display(port, assigned)
    return None


def _before(port: Port, statement: cst.CSTNode | None) -> cst.CSTNode | None:
    """Return the statement that has run before *statement*: the one before it in its block, or before the ``if`` or ``with`` around it."""
    while statement is not None and statement not in port.before:
        start, end = port.file.span(statement)
        around = [(port.file.span(node), node) for kind in _COMPOUND for node, _ in port.file.nodes.of(kind)]
        outer = [(span, node) for span, node in around if span.start < start and end <= span.end]
        innermost = max(outer, key=lambda each: each[0].start, default=(None, None))[1]
        statement = innermost if isinstance(innermost, _RUN_ONCE) else None
    return port.before.get(statement) if statement is not None else None


def _assigned(node: cst.Assign) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield the targets of an assignment with what each is assigned."""
    for each in node.targets:
        target, value = each.target, node.value
        yield target, value
        if (
            isinstance(target, cst.Tuple)
            and isinstance(value, cst.Tuple)
            and len(target.elements) == len(value.elements)
        ):
            yield from ((one.value, other.value) for one, other in zip(target.elements, value.elements, strict=True))


def _is_never_empty(port: Port, value: cst.BaseExpression) -> bool | None:
    """Return False if all that is assigned to the attribute *value* are lists with elements, and None otherwise."""
    place = port.flows.definitions.place(value)
    values = port.flows.into.get(place, ()) if place is not None else ()
    made = [_is_display(port, each.source) for each in values if isinstance(each.source, cst.BaseExpression)]
    return False if made and all(each is False for each in made) else None


def _is_in_a_loop_without(port: Port, values: Sequence[cst.BaseExpression]) -> bool:
    """Tell whether the call is in a loop in which none of *values* is assigned: they last from one round to the next."""
    assert port.statement is not None
    at = port.file.span(port.statement).start
    loops = [node for kind in (cst.For, cst.While) for node, _ in port.file.nodes.of(kind)]
    spans = [span for span in map(port.file.span, loops) if span.start <= at < span.end]
    return any(not any(span.start <= port.file.span(each).start < span.end for each in values) for span in spans)
