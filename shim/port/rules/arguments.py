"""The arguments of a call of a collective, from the source's parameters to the target's."""

from __future__ import annotations

import libcst as cst

from shim.port.correspondences.names import name_for
from shim.port.correspondences.table import ADVISORY, Parameter, forms_of
from shim.port.plan import Left
from shim.port.reading.expressions import flag_of, is_closed, literal_of
from shim.port.rules.groups import check_group, is_world
from shim.port.rules.lists import is_for_root_only, to_wrap
from shim.port.rules.port import Port
from shim.port.rules.remarks import left_without
from shim.port.rules.rewriting import Given, Rewriting


def port_arguments(rewriting: Rewriting, settled: str = "", result: tuple[str, str] | None = None) -> None:
    """Change the arguments of a call, without that of the role *settled*, which choosing the target has settled.

    *result* is a role, and the code of the tensor that the target fills for it, where the source returns a new one. Raises Left, and changes nothing, where that cannot be done.
    """
    leading = _leading(rewriting, result)
    rewriting.place_arguments(
        lambda given: None if given.parameter.role == settled else _target_of(rewriting, given),
        lambda given, parameter: _convert(rewriting, given, parameter),
        leading,
    )
    _add_missing(rewriting)
    if result is not None and not leading and rewriting.value(result[0]) is None:
        found = rewriting.target.of_role(result[0])
        rewriting.added += [f"{found.name}={result[1]}"] if found is not None else []
    rewriting.make()


def _leading(rewriting: Rewriting, result: tuple[str, str] | None) -> int:
    """Write the *result* in place of the tensor that is given for its role, or first where the target has it first. Returns how many arguments that adds."""
    if result is None or not rewriting.given:
        return 0
    (role, code), port = result, rewriting.port
    given = rewriting.value(role)
    if given is not None:
        if code != port.file.code(given):
            start, end = port.file.outer_span(given)
            rewriting.changes.append(lambda: port.edits.replace(start, end, code))
        return 0
    first = rewriting.given[0].argument
    if rewriting.target.parameters[0].role != role or first.keyword is not None:
        return 0
    start = port.file.span(first).start
    rewriting.changes.append(lambda: port.edits.insert(start, f"{code}, "))
    return 1


def _target_of(rewriting: Rewriting, each: Given) -> Parameter | None:
    """Return the target's parameter for the argument, None to drop it. Raises Left where its loss would change what the call does."""
    port, target = rewriting.port, rewriting.target
    role, name = each.parameter.role, each.parameter.name
    found = target.of_role(role) if role != "-" else None
    code = port.file.code(each.value)
    if role == "backend" and _is_refused(port, code):
        why = f"{port.target.framework} may not take {name}={code}"
        rewriting.report(each.argument, "argument-without-effect", why, _ADVICE[role])
        return None
    if found is not None:
        return found
    if role != "-" and role.startswith("group_") and (found := target.of_role(role.removeprefix("group_"))) is not None:
        if literal_of(code) == "None":
            return None
        _from_group_rank(rewriting, each)
        return found
    flag = flag_of(each.value)
    literal = literal_of(code) if flag is None else str(flag is not each.parameter.inverted)
    default = each.parameter.default
    if literal is not None and literal in (default, "None" if role in ADVISORY else default):
        return None
    if role in ADVISORY:
        rewriting.without_effect.append((f"{name}={code}", _ADVICE.get(role, _OTHERWISE)))
        return None
    if role == "tag" and literal == "0":
        return None
    if role == "group" and is_world(port, each.value):
        rewriting.changes.append(lambda: port.forget(each.value))
        return None
    raise Left(
        "no-equivalent-argument",
        f"{target.name} has no parameter for {name}={code}",
        _LEFT.get(role, f"Write the call without {name}, or do by other calls what it does."),
    )


_OF_LAUNCHER = (
    "The target takes it from the launcher's variables: start the program with the target's launcher or shim run."
)
_OTHERWISE = "The call does without it. If the program depends on it, set it where the target framework has it."
_ADVICE = {
    "rank": _OF_LAUNCHER,
    "world_size": _OF_LAUNCHER,
    "init_method": _OF_LAUNCHER,
    "names_missing_ranks": "On shim's frontends, the error of every call that times out names the ranks that are missing.",
    "store": "The target makes its own store, where the launcher's variables say.",
    "backend": "The target chooses its backend by the device.",
}

_LEFT = {
    "tag": "Messages of two ranks arrive in the order in which they were sent: put sends and receives into the same order and leave the tag out.",
    "background": "Call it without waiting for a handle, or find another call to overlap.",
    "members_alone": "Have every rank call it, not only the group's members.",
}


def _from_group_rank(rewriting: Rewriting, each: Given) -> None:
    """Have a rank in the group become one in the world."""
    port, group = rewriting.port, rewriting.value("group")
    if group is None or port.file.code(group) == "None":
        return
    if not isinstance(group, (cst.Name, cst.Attribute)) or port.file.imported(group) is not None:
        raise Left(
            "group-rank",
            f"{each.parameter.name} counts in the group, and the target counts in the world",
            "Keep the group in a variable, and port again.",
        )
    code, span = port.file.code(group), port.file.outer_span(each.value)
    if port.target.framework == "paddle":
        rewriting.around(*span, f"{code}.ranks[", "]")
    else:
        function = rewriting.spell(forms_of("rank_in_world", port.plan.target)[0].name)
        rewriting.around(*span, f"{function}({code}, ", ")")


def _convert(rewriting: Rewriting, given: Given, parameter: Parameter) -> None:
    """Change the argument's value where the target means another thing by the same."""
    port, value = rewriting.port, given.value
    if given.parameter.inverted != parameter.inverted:
        _invert(rewriting, value)
    elif not port.between_frameworks:
        return
    elif parameter.role == "op":
        _convert_op(rewriting, given)
    elif parameter.role == "backend":
        _convert_backend(rewriting, given)
    elif parameter.role == "group" and is_world(port, value):
        rewriting.replace(value, "None")
        rewriting.changes.append(lambda: port.forget(value))
    elif parameter.role == "group":
        check_group(port, value)
    elif is_for_root_only(rewriting.target, parameter.role):
        around = to_wrap(port, value, rewriting.value("root"), rewriting.target, rewriting.spell)
        if around is not None:
            rewriting.around(*port.file.outer_span(value), *around)


def _invert(rewriting: Rewriting, value: cst.BaseExpression) -> None:
    port, flag = rewriting.port, flag_of(value)
    if flag is not None:
        rewriting.replace(value, str(not flag))
    elif isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not):
        start, end = port.file.span(value).start, port.file.outer_span(value.expression).start
        rewriting.changes.append(lambda: port.edits.replace(start, end, ""))
    else:
        rewriting.around(*port.file.outer_span(value), *(("not ", "") if is_closed(value) else ("not (", ")")))


# The forms of an op that MindSpore and Paddle 3 take beside a member of ReduceOp, by torch's name of it.
_NAMES_OF_OPS = ("SUM", "MAX", "MIN", "PRODUCT", "AVG")
_OPS = {
    **dict(zip(("'sum'", "'max'", "'min'", "'prod'", "'avg'"), _NAMES_OF_OPS, strict=True)),
    **{str(number): name for number, name in enumerate(_NAMES_OF_OPS)},
}


def _convert_op(rewriting: Rewriting, given: Given) -> None:
    port, code = rewriting.port, rewriting.port.file.code(given.value)
    op = _OPS.get(str(literal_of(code)))
    if op is None:
        if _holds_another_form(port, given.value):
            raise Left(
                "op-not-known",
                f"{code} is an op in a form that {port.target.framework} does not take",
                "Have it be one of ReduceOp, and port again.",
            )
        if port.source.framework != "torch" and not port.is_op(given.value):
            why = f"{code} may be an op in the source framework's form, such as 'sum' or 0"
            rewriting.report(given.argument, "op-not-known", why, "Have it be one of the target's ReduceOp.")
        return
    torchs = f"torch.distributed.ReduceOp.{op}"
    name = torchs if port.plan.target == "torch" else name_for(torchs, "torch", port.plan.target)
    if name is None:
        raise left_without(port, name_for(torchs, "torch", port.plan.source) or torchs)
    rewriting.replace(given.value, rewriting.spell(name))


def _holds_another_form(port: Port, node: cst.BaseExpression) -> bool:
    """Tell whether a variable gets an op as a string or number that stands in the source."""
    values = [value.source for value in port.flows.into.get(port.flows.definitions.place(node), ())]
    values += [
        each.value for value in values if isinstance(value, (cst.List, cst.Tuple, cst.Set)) for each in value.elements
    ]
    return port.between_frameworks and any(
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
    if not port.between_frameworks:
        return False
    if port.plan.target == "mindspore":
        return literal is None
    return port.plan.target == "torch" and port.plan.onto == "shim" and (literal or "").lower() == "'hccl'"


def _convert_backend(rewriting: Rewriting, given: Given) -> None:
    code = rewriting.port.file.code(given.value)
    literal = literal_of(code)
    if literal == "None":
        return
    known = _BACKENDS[rewriting.port.target.framework]
    name = literal.strip("'").lower() if literal else ""
    if literal and name in known:
        if known[name] != literal.strip("'"):
            rewriting.replace(given.value, f'"{known[name]}"')
        if known[name] == "hccl" and name in ("gloo", "mpi"):
            why = f'{code} is "hccl" in the port, which in MindSpore itself is for Ascend alone'
            advice = "Start the program on Ascend, or port it onto shim, whose frontend takes the name on any device."
            rewriting.report(given.argument, "backend-name", why, advice)
        return
    if literal and name in known.values():
        return
    rewriting.report(
        given.argument,
        "backend-name",
        f"{code} is a backend's name of the source framework",
        f"Check that it is one of {', '.join(sorted(set(known.values())))} when the program runs.",
    )


def _add_missing(rewriting: Rewriting) -> None:
    """Add the keywords for what leaving them out means in the source and not in the target."""
    source, target = rewriting.source, rewriting.target
    used = {each.parameter.role for each in rewriting.given}
    for parameter in source.parameters:
        role = parameter.role
        other = target.of_role(role)
        if role in used or role in ADVISORY or role == "-" or other is None or parameter.default is None:
            continue
        if f"group_{role}" in used or parameter.default == other.default:
            continue
        if parameter.default == "any":
            why = f"{source.name} without {parameter.name} takes a message of any rank"
            raise Left("any-source", why, "Name the rank that sends.")
        if literal_of(parameter.default) is None or (parameter.default == "None" and role in ("root", "peer")):
            continue
        default = "[]" if parameter.default == "None" and is_for_root_only(target, role) else parameter.default
        if other.inverted:
            default = {"True": "False", "False": "True"}.get(default, default)
        rewriting.added.append(f"{other.name}={default}")
