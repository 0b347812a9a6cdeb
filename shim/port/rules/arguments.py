"""One call's arguments, from the source's parameters to the target's.

Arguments stay where they are, in their order, so that layout, comments and the order of evaluation stay too: where the target has another order of
parameters, they become keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from shim.port.correspondences import ADVISORY, Form, Parameter, forms_of, name_for
from shim.port.plan import Left
from shim.port.rules.given import Given, hidden
from shim.port.rules.group_names import check_group, is_world
from shim.port.rules.literals import flag_of, literal_of
from shim.port.rules.port import Port
from shim.port.rules.reporting.unknown_names import left_without
from shim.port.rules.root_lists import is_for_root_only, to_wrap

_NO_ARGUMENT = "no-equivalent-argument"


class _Changes:
    """The changes of one call, made once nothing speaks against them."""

    def __init__(self, port: Port, given: Sequence[Given]) -> None:
        self.port = port
        self.given = given
        self.made: list[Callable[[], None]] = []
        self.dropped: set[int] = set()
        self.advice: list[tuple[cst.CSTNode, str, str, str]] = []

    def around(self, value: cst.BaseExpression, before: str, after: str) -> None:
        start, end = self.port.file.outer_span(value)
        self.made.append(lambda: self.port.edits.insert(start, before))
        if after:
            self.made.append(lambda: self.port.edits.insert_after(end, after))

    def replace(self, node: cst.CSTNode, new: str) -> None:
        start, end = self.port.file.span(node)
        self.made.append(lambda: self.port.edits.replace(start, end, new))
        self.made.append(lambda: self.port.done.add(node))


def port_arguments(
    port: Port,
    node: cst.Call,
    given: Sequence[Given],
    source: Form,
    target: Form,
    spell: Callable[[str], str],
    settled: str = "",
    result: tuple[str, str] | None = None,
) -> None:
    """Change the arguments of *node* from *source*'s parameters to *target*'s, without that of the role *settled*, which choosing the target has settled.

    *result* is a role, and the code of the tensor that the target fills for it, where the source returns a new one. Raises Left, and changes nothing, where that cannot be done.
    """
    changes = _Changes(port, given)
    used = {each.parameter.role for each in given}
    keywords = False
    leading = _leading(port, changes, target, used, result)
    for position, each in enumerate(given):
        parameter = (
            _target_of(port, changes, given, position, target, spell) if each.parameter.role != settled else None
        )
        if parameter is None:
            if each.element is not None:
                raise hidden(port, each.argument, source)
            changes.dropped.add(position)
            keywords = True
            continue
        place = position + leading
        in_place = place < len(target.parameters) and target.parameters[place] is parameter
        keywords = keywords or not in_place
        if each.keyword is not None:
            if each.parameter.name != parameter.name:
                quote = each.keyword.quote if isinstance(each.keyword, cst.SimpleString) else ""
                changes.replace(each.keyword, f"{quote}{parameter.name}{quote}")
        elif keywords:
            _insert_keyword(port, changes, each, parameter)
        _convert(port, changes, each, parameter, target, spell)
    missing = _missing(source, target, used, given)
    if (
        result is not None
        and result[0] not in used
        and not leading
        and (found := target.of_role(result[0])) is not None
    ):
        missing.append(f"{found.name}={result[1]}")
    _write(port, changes, node, missing)


def _leading(port: Port, changes: _Changes, target: Form, used: set[str], result: tuple[str, str] | None) -> int:
    """Write the *result* in place of the tensor that is given for its role, or first where the target has it first. Returns how many arguments that adds."""
    if result is None or not changes.given:
        return 0
    role, code = result
    given = next((each for each in changes.given if each.parameter.role == role), None)
    if given is not None:
        if code != port.file.code(given.value):
            start, end = port.file.outer_span(given.value)
            changes.made.append(lambda: port.edits.replace(start, end, code))
        return 0
    first = changes.given[0].argument
    if target.parameters[0].role != role or first.keyword is not None:
        return 0
    start = port.file.span(first).start
    changes.made.append(lambda: port.edits.insert(start, f"{code}, "))
    return 1


def _insert_keyword(port: Port, changes: _Changes, given: Given, parameter: Parameter) -> None:
    start = port.file.span(given.argument).start
    changes.made.insert(0, lambda: port.edits.insert(start, f"{parameter.name}="))


def _target_of(
    port: Port, changes: _Changes, given: Sequence[Given], position: int, target: Form, spell: Callable[[str], str]
) -> Parameter | None:
    """Return the target's parameter for the argument at *position*, None to drop it. Raises Left where its loss would change what the call does."""
    each = given[position]
    role, name = each.parameter.role, each.parameter.name
    found = target.of_role(role) if role != "-" else None
    code = port.file.code(each.value)
    if role == "backend" and _is_refused(port, code):
        why = f"{port.target.framework} may not take {name}={code}"
        changes.advice.append((each.argument, "argument-without-effect", why, _ADVICE[role]))
        return None
    if found is not None:
        return found
    if role != "-" and role.startswith("group_") and (found := target.of_role(role.removeprefix("group_"))) is not None:
        if literal_of(code) == "None":
            return None
        _from_group_rank(port, changes, given, each, spell)
        return found
    flag = flag_of(each.value)
    literal = literal_of(code) if flag is None else str(flag is not each.parameter.inverted)
    default = each.parameter.default
    if literal is not None and literal in (default, "None" if role in ADVISORY else default):
        return None
    if role in ADVISORY:
        changes.advice.append(
            (
                each.argument,
                "argument-without-effect",
                f"{target.name} has no parameter for {name}={code}",
                _ADVICE.get(
                    role,
                    f"The call does without it. If the program depends on {name}, set it where the target framework has it.",
                ),
            )
        )
        return None
    if role == "tag" and literal == "0":
        return None
    if role == "group" and is_world(port, each.value):
        changes.made.append(lambda: port.forget(each.value))
        return None
    raise Left(
        _NO_ARGUMENT,
        f"{target.name} has no parameter for {name}={code}",
        _LEFT.get(role, f"Write the call without {name}, or do by other calls what it does."),
    )


_ADVICE = {
    "rank": "The target takes the rank from the launcher's variables: start the program with the target's launcher or shim run.",
    "world_size": "The target takes the number of ranks from the launcher's variables: start the program with the target's launcher or shim run.",
    "init_method": "The target takes the address from the launcher's variables: start the program with the target's launcher or shim run.",
    "names_missing_ranks": "On shim's frontends, the error of every call that times out names the ranks that are missing.",
    "store": "The target makes its own store, where the launcher's variables say.",
    "backend": "The target chooses its backend by the device.",
}

_LEFT = {
    "tag": "Messages of two ranks arrive in the order in which they were sent: put sends and receives into the same order and leave the tag out.",
    "background": "Call it without waiting for a handle, or find another call to overlap.",
    "members_alone": "Have every rank call it, not only the group's members.",
}


def _from_group_rank(
    port: Port, changes: _Changes, given: Sequence[Given], each: Given, spell: Callable[[str], str]
) -> None:
    """Have a rank in the group become one in the world."""
    group = next((other.value for other in given if other.parameter.role == "group"), None)
    if group is None or port.file.code(group) == "None":
        return
    if not isinstance(group, (cst.Name, cst.Attribute)) or port.file.imported(group) is not None:
        raise Left(
            "group-rank",
            f"{each.parameter.name} counts in the group, and the target counts in the world",
            "Keep the group in a variable, and port again.",
        )
    code = port.file.code(group)
    if port.target.framework == "paddle":
        changes.around(each.value, f"{code}.ranks[", "]")
    else:
        changes.around(each.value, f"{spell(forms_of('rank_in_world', port.plan.target)[0].name)}({code}, ", ")")


def _convert(
    port: Port, changes: _Changes, given: Given, parameter: Parameter, target: Form, spell: Callable[[str], str]
) -> None:
    """Change the argument's value where the target means another thing by the same."""
    if given.parameter.inverted != parameter.inverted:
        flag = flag_of(given.value)
        if flag is not None:
            changes.replace(given.value, str(not flag))
        elif isinstance(given.value, cst.UnaryOperation) and isinstance(given.value.operator, cst.Not):
            start = port.file.span(given.value).start
            end = port.file.outer_span(given.value.expression).start
            changes.made.append(lambda: port.edits.replace(start, end, ""))
        else:
            simple = isinstance(given.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or given.value.lpar
            changes.around(given.value, "not " if simple else "not (", "" if simple else ")")
    elif port.source.framework == port.target.framework:
        return
    elif parameter.role == "op":
        _convert_op(port, changes, given, spell)
    elif parameter.role == "backend":
        _convert_backend(port, changes, given)
    elif parameter.role == "group" and is_world(port, given.value):
        changes.replace(given.value, "None")
        changes.made.append(lambda: port.forget(given.value))
    elif parameter.role == "group":
        check_group(port, given.value)
    elif is_for_root_only(target, parameter.role):
        root = next((each.value for each in changes.given if each.parameter.role == "root"), None)
        around = to_wrap(port, given.value, root, target, spell)
        if around is not None:
            changes.around(given.value, *around)


# The forms of an op that MindSpore and Paddle 3 take beside a member of ReduceOp, by torch's name of it.
_OPS = {
    "'sum'": "SUM",
    "'max'": "MAX",
    "'min'": "MIN",
    "'prod'": "PRODUCT",
    "'avg'": "AVG",
    "0": "SUM",
    "1": "MAX",
    "2": "MIN",
    "3": "PRODUCT",
    "4": "AVG",
}


def _convert_op(port: Port, changes: _Changes, given: Given, spell: Callable[[str], str]) -> None:
    literal = literal_of(port.file.code(given.value))
    op = _OPS.get(str(literal))
    if op is None:
        if _holds_another_form(port, given.value):
            raise Left(
                "op-not-known",
                f"{port.file.code(given.value)} is an op in a form that {port.target.framework} does not take",
                "Have it be one of ReduceOp, and port again.",
            )
        if port.source.framework != "torch" and not port.is_op(given.value):
            changes.advice.append(
                (
                    given.argument,
                    "op-not-known",
                    f"{port.file.code(given.value)} may be an op in the source framework's form, such as 'sum' or 0",
                    "Have it be one of the target's ReduceOp.",
                )
            )
    else:
        name: str | None = f"torch.distributed.ReduceOp.{op}"
        if port.plan.target != "torch":
            name = name_for(f"torch.distributed.ReduceOp.{op}", "torch", port.plan.target)
        if name is None:
            torchs = f"torch.distributed.ReduceOp.{op}"
            raise left_without(port, name_for(torchs, "torch", port.plan.source) or torchs)
        changes.replace(given.value, spell(name))


def _holds_another_form(port: Port, node: cst.BaseExpression) -> bool:
    """Tell whether a variable gets an op as a string or number that stands in the source."""
    values = [value.source for value in port.flows.into.get(port.flows.definitions.place(node), ())]
    values += [
        each.value for value in values if isinstance(value, (cst.List, cst.Tuple, cst.Set)) for each in value.elements
    ]
    return port.source.framework != port.target.framework and any(
        isinstance(value, (cst.SimpleString, cst.Integer)) and str(literal_of(port.file.code(value))) in _OPS
        for value in values
    )


_BACKENDS = {
    "torch": {"hccl": "hccl", "mccl": "gloo", "nccl": "nccl"},
    "paddle": {"gloo": "gloo", "nccl": "nccl", "hccl": "hccl", "mccl": "gloo"},
    "mindspore": {"gloo": "hccl", "nccl": "hccl", "hccl": "hccl", "mpi": "hccl"},
}


def _is_refused(port: Port, code: str) -> bool:
    """Tell whether the target may refuse a backend: MindSpore a variable's, torch's frontend one that torch gets from a plugin."""
    literal = literal_of(code)
    if port.source.framework == port.target.framework:
        return False
    if port.plan.target == "mindspore":
        return literal is None
    return port.plan.target == "torch" and port.plan.onto == "shim" and (literal or "").lower() == "'hccl'"


def _convert_backend(port: Port, changes: _Changes, given: Given) -> None:
    code = port.file.code(given.value)
    literal = literal_of(code)
    if literal == "None":
        return
    known = _BACKENDS[port.target.framework]
    name = literal.strip("'").lower() if literal else ""
    if literal and name in known:
        if known[name] != literal.strip("'"):
            changes.replace(given.value, f'"{known[name]}"')
        return
    if literal and name in known.values():
        return
    changes.advice.append(
        (
            given.argument,
            "backend-name",
            f"{code} is a backend's name of the source framework",
            f"Check that it is one of {', '.join(sorted(set(known.values())))} when the program runs.",
        )
    )


def _missing(source: Form, target: Form, used: set[str], given: Sequence[Given]) -> list[str]:
    """Return the keywords to add, for what leaving them out means in the source and not in the target."""
    added = []
    for parameter in source.parameters:
        role = parameter.role
        other = target.of_role(role)
        if role in used or role in ADVISORY or role == "-" or other is None or parameter.default is None:
            continue
        if f"group_{role}" in used or parameter.default == other.default:
            continue
        if parameter.default == "any":
            raise Left(
                "any-source",
                f"{source.name} without {parameter.name} takes a message of any rank",
                "Name the rank that sends.",
            )
        if literal_of(parameter.default) is None or (parameter.default == "None" and role in ("root", "peer")):
            continue
        default = "[]" if parameter.default == "None" and is_for_root_only(target, role) else parameter.default
        if other.inverted:
            default = {"True": "False", "False": "True"}.get(default, default)
        added.append(f"{other.name}={default}")
    return added


def _write(port: Port, changes: _Changes, node: cst.Call, added: list[str]) -> None:
    for make in changes.made:
        make()
    kept = [position for position in range(len(changes.given)) if position not in changes.dropped]
    _drop(port, changes, node, kept)
    if added:
        text = ", ".join(added)
        if kept:
            port.edits.insert_after(port.file.span(changes.given[kept[-1]].argument).end, f", {text}")
        else:
            port.edits.insert_after(port.file.span(node).end - 1, text)
    for place, rule, why, advice in changes.advice:
        port.report(place, "changed", rule, why, advice)


def _drop(port: Port, changes: _Changes, node: cst.Call, kept: list[int]) -> None:
    """Take the dropped arguments out, with one comma each."""
    spans = [port.file.span(each.argument) for each in changes.given]
    if changes.dropped and not kept:
        before = port.file.text[: spans[0].start].rstrip()
        start = len(before) if before.endswith(b"(") else spans[0].start
        port.edits.remove(start, port.file.span(node).end - 1)
        return
    for position in sorted(changes.dropped):
        if position < kept[-1]:
            port.edits.remove(spans[position].start, spans[position + 1].start)
    if kept and kept[-1] < len(spans) - 1:
        port.edits.remove(spans[kept[-1]].end, spans[-1].end)
