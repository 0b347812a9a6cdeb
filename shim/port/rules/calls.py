"""Calls of a collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from shim.port.correspondences import Form, form_for, forms_of
from shim.port.glue import glue_form
from shim.port.plan import Left
from shim.port.rules.arguments import port_arguments
from shim.port.rules.filled_lists import before_call
from shim.port.rules.given import Given, bind
from shim.port.rules.literals import flag_of, is_list
from shim.port.rules.port import Port
from shim.port.rules.reporting.remarks import remark
from shim.port.rules.reporting.unknown_names import left_without

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
    if in_background is not None:
        port_arguments(port, node, given, source, in_background, spell, settled="background")
        return in_background.name
    port_arguments(port, node, given, source, target, spell)
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
        return answers.pop() if len(answers) == 1 else None
    return is_list(value)
