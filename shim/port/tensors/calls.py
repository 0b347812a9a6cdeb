"""Calls of tensors' functions and methods whose arguments have defaults."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from shim.port.correspondences.names import dtype_of
from shim.port.correspondences.table import TENSORS, Form, Parameter
from shim.port.correspondences.tensors import DIFFERENCES
from shim.port.plan import Left
from shim.port.reading.expressions import is_list, literal_of
from shim.port.rules.port import Port
from shim.port.rules.rewriting import Given, Rewriting, bind
from shim.port.rules.templates import spelled
from shim.port.tensors.numbers import port_sum
from shim.port.tensors.shapes import port_zeros

_LISTS_ALONE = ("mindspore.ops.full",)
_TUPLES_ALONE = ("mindspore.ops.randint", ".tile", ".flip")


def port_tensor_call(port: Port, node: cst.Call, rows: Sequence[tuple[str, Form]]) -> None:
    """Port *node*, a call of the function or, where their names begin with a dot, the method of *rows*. Raises Left, and changes nothing, where it cannot."""
    row, source = rows[0]
    if len(rows) > 1:
        why = f"{source.name.lstrip('.')} does other things with a tensor than with a number, and {port.file.code(node)} does not show which it gets"
        raise Left("axis-or-tensor", why, "Write the name of the parameter, and port again.")
    forms = TENSORS.forms_of(row, port.plan.target)
    if not forms:
        why = f"{port.target.framework} has no equivalent of {source.name.lstrip('.')}"
        raise Left("no-equivalent", why, "Write by hand what the code needs of it.")
    target, given = forms[0], bind(port, node.args, source)
    if not port.tensors.fits(node, source):
        why = f"the table has {source.name.lstrip('.')} with other arguments than {port.file.code(node)} gives or leaves out"
        raise Left("no-equivalent-argument", why, "Port this call by hand.")
    rewriting = Rewriting(port, node, node.args, given, source, target, port.framework.spell)
    for parameter in source.parameters:
        if parameter.fixed is not None and all(each.parameter is not parameter for each in given):
            why = f"{source.name.lstrip('.')} does more without {parameter.name}={parameter.fixed}, which {target.name.lstrip('.')} does not"
            rewriting.report(node, "argument-by-default", why, "Look whether the code depends on it.")
    rule = _RULES.get(row.lstrip("."))
    frameworks = {port.source.framework, port.target.framework}
    if rule is not None and len(frameworks) == 2 and ("paddle" in frameworks or rule in _BETWEEN_ALL):
        rule(rewriting)
    if len(frameworks) == 2:
        _report_difference(rewriting, row)
    if target.second is not None:
        _write_pair(rewriting, target.second)
    else:
        _port_shape(rewriting)
        rewriting.place_arguments(
            lambda given: _target_of(rewriting, given), lambda given, _: _convert_dtype(rewriting, given)
        )
        _add_arguments(rewriting)
        _write_function(rewriting)
        rewriting.make()
    port.done |= rewriting.dropped
    port.places += 1


def _report_difference(rewriting: Rewriting, row: str) -> None:
    """Report that the row's functions do not quite do the same."""
    if row not in DIFFERENCES:
        return
    who, *note = DIFFERENCES[row]
    differs = who.removeprefix("from ")
    frameworks = [rewriting.port.source.framework, rewriting.port.target.framework]
    if note[0] == "dtype-of-integers" and rewriting.value("dtype") is not None:
        return
    if differs == "any" or differs in frameworks[: 1 if differs != who else 2]:
        rewriting.report(rewriting.node, *note)


def _add_arguments(rewriting: Rewriting) -> None:
    """Add the arguments that the target always has, and those by default in the source alone. Raises Left for one that the source does not give."""
    source, target = rewriting.source, rewriting.target
    given = {each.parameter.role for each in rewriting.given}
    for parameter in target.parameters:
        own = source.of_role(parameter.role)
        literal = None if own is None or own.default is None else literal_of(own.default)
        if parameter.fixed is not None:
            rewriting.added.append(f"{parameter.name}={parameter.fixed}")
        elif parameter.role in given or parameter.name == "self" or _is_receiver(rewriting, parameter):
            continue
        elif (
            literal not in (None, "None")
            and parameter.default != "None"
            and literal != literal_of(parameter.default or "")
        ):
            rewriting.added.append(f"{parameter.name}={literal}")
        elif parameter.default is None:
            why = f"{target.name.lstrip('.')} needs {parameter.name}, which the call does not give"
            raise Left("no-equivalent-argument", why, "Give it, and port again.")


def _is_receiver(rewriting: Rewriting, parameter: Parameter) -> bool:
    """Tell whether *parameter* of a function takes the tensor whose method the source calls."""
    return parameter.role == "tensor" and rewriting.source.name.startswith(".")


def _write_function(rewriting: Rewriting) -> None:
    """Write the target's name, and what stands before and after the call; a method may become a function."""
    port, node, target = rewriting.port, rewriting.node, rewriting.target
    start, end = port.file.span(node)
    if not rewriting.source.name.startswith("."):
        rewriting.replace(node.func, port.framework.spell(target.name))
    else:
        function = cst.ensure_type(node.func, cst.Attribute)
        if target.is_copied:
            if not isinstance(function.value, (cst.Name, cst.Attribute)):
                why = f"{port.target.framework} has no {rewriting.source.name[1:]}, and the tensor that it changes has no name"
                raise Left("no-equivalent", why, "Keep the tensor in a variable.")
            rewriting.around(start, end, f"{port.file.code(function.value)}.copy_(", ")")
        if target.name.startswith("."):
            rewriting.replace(function.attr, target.name[1:])
        else:
            _write_receiver(rewriting, function)
    if target.after:
        after = spelled(target.after, port.framework.spell)
        rewriting.changes.append(lambda: port.edits.insert_after(end, after))


def _write_receiver(rewriting: Rewriting, function: cst.Attribute) -> None:
    """Write the tensor whose method is called as the first argument of the target's function."""
    port = rewriting.port
    start, end = port.file.outer_span(function.value)
    first = (
        port.file.span(rewriting.arguments[0]).start if rewriting.arguments else port.file.span(rewriting.node).end - 1
    )
    if b"#" in port.file.text[end:first]:
        raise Left("no-equivalent", "a comment stands between the tensor and the arguments", "Move it.")
    comma = ", " if set(rewriting.arguments) - rewriting.dropped else ""
    rewriting.changes.append(lambda: port.edits.insert(start, f"{port.framework.spell(rewriting.target.name)}("))
    rewriting.changes.append(lambda: port.edits.replace(end, first, comma))


def _write_pair(rewriting: Rewriting, second: Form) -> None:
    """Write the tuple of two calls that the target has in place of one. Raises Left for arguments that are more than names and numbers."""
    port, node, tensor = rewriting.port, rewriting.node, rewriting.tensor()
    arguments = []
    if not isinstance(tensor, cst.Name):
        why = f"{port.target.framework} takes the values and their indices by two calls, and the tensor would be computed twice"
        raise Left("computed-twice", why, "Keep it in a variable, and port again.")
    for each in rewriting.given:
        parameter, code = _target_of(rewriting, each), port.file.code(each.value)
        if not isinstance(each.value, cst.Name) and literal_of(code) is None:
            why = f"{port.target.framework} takes the values and their indices by two calls, and {code} would be computed twice"
            raise Left("computed-twice", why, "Keep it in a variable, and port again.")
        if parameter is not None:
            arguments.append(code if parameter.role == "tensor" else f"{parameter.name}={code}")
    for change in rewriting.changes:  # only what is reported
        change()
    names = (
        f"{tensor.value}{form.name}" if form.name.startswith(".") else port.framework.spell(form.name)
        for form in (rewriting.target, second)
    )
    calls = [f"{name}({', '.join(arguments)})" for name in names]
    port.edits.replace(*port.file.span(node), f"({', '.join(calls)})")
    port.done |= {node.func, *node.args}


def _says_the_same(default: str | None, other: str | None) -> bool:
    """Tell whether one of two defaults is None, which stands for the value that the other has."""
    return other is not None and default != other and "None" in (default, other)


def _target_of(rewriting: Rewriting, given: Given) -> Parameter | None:
    """Return the target's parameter for the argument, None to drop it. Raises Left where its loss would change what the call does."""
    parameter, name = given.parameter, rewriting.target.name.lstrip(".")
    if parameter.fixed is not None and literal_of(rewriting.port.file.code(given.value)) == parameter.fixed:
        return None
    found = rewriting.target.of_role(parameter.role)
    code = rewriting.port.file.code(given.value)
    is_default = parameter.default is not None and literal_of(code) == literal_of(parameter.default)
    if is_default and (found is None or _says_the_same(parameter.default, found.default)):
        return None
    if found is not None:
        return found
    if parameter.role == "device":
        why = f"{name} makes the tensor on the current device, and {parameter.name}={code} was left out"
        advice = "Have the program set the device of each rank once, when it starts."
        rewriting.report(given.argument, "device-not-given", why, advice)
        return None
    why = f"{name} has no parameter for {parameter.name}={code}"
    advice = f"Write the call without {parameter.name}, or do by other calls what it does."
    raise Left("no-equivalent-argument", why, advice)


def _convert_dtype(rewriting: Rewriting, given: Given) -> None:
    """Name a dtype that Paddle calls by a string."""
    port, value = rewriting.port, given.value
    is_from_paddle = port.source.framework == "paddle" != port.target.framework
    if given.parameter.role != "dtype" or not is_from_paddle:
        return
    code, kind = port.file.code(value), port.tensors.of(value)
    literal = literal_of(code)
    name = dtype_of(literal.strip("'"), port.plan.target) if literal is not None else None
    if name is not None:
        rewriting.replace(value, port.framework.spell(name))
    elif kind == "text":
        why = f"{code} is a string, and {port.target.framework} takes dtypes alone"
        raise Left("dtype-as-string", why, f"Name the dtype of {port.target.framework}.")
    elif kind is None and port.file.imported(value) is None and not code.endswith(".dtype") and code != "None":
        why = f"{code} may be a string, and {port.target.framework} takes dtypes alone"
        rewriting.report(given.argument, "dtype-as-string", why, "Have it be a dtype of the framework.")


def _port_shape(rewriting: Rewriting) -> None:
    """Put brackets round a shape whose numbers stand side by side, or that is one number, where the target wants a list."""
    port, target = rewriting.port, rewriting.target
    shape = [each.argument for each in rewriting.given if each.parameter.role == "shape"]
    if not shape or target.is_variadic:
        return
    is_number = port.tensors.of(shape[0].value) == "number"
    side_by_side = rewriting.source.is_variadic and (len(shape) > 1 or bool(shape[0].star))
    of_tuples = target.api == "mindspore" and target.name in _TUPLES_ALONE
    if of_tuples and isinstance(shape[0].value, (cst.List, cst.ListComp)):
        rewriting.around(*port.file.outer_span(shape[0].value), "tuple(", ")")
    elif side_by_side or is_number:
        first = shape[0] if shape[0].keyword is None else shape[0].value
        brackets = ("(", ",)") if of_tuples else ("[", "]")
        rewriting.around(port.file.span(first).start, port.file.span(shape[-1]).end, *brackets)
        # from here on they are one argument, the first
        rewriting.given = [rewriting.given[0], *rewriting.given[len(shape) :]]
    elif target.name in _LISTS_ALONE or port.plan.target == "paddle_2":
        kind = port.tensors.of(shape[0].value)
        if kind is None and not is_list(shape[0].value):
            rewriting.report(
                shape[0],
                "shape-may-be-number",
                f"{target.name.lstrip('.')} takes a list of numbers, and {port.file.code(shape[0])} may be one number",
                "Put it into brackets if it is a number.",
            )


def _port_split(rewriting: Rewriting) -> None:
    """Port the parts, which are sizes or, in Paddle, a number of parts where others have the size of each."""
    port = rewriting.port
    parts = rewriting.value("parts")
    if parts is None:
        return
    kind = "list" if is_list(parts) else port.tensors.of(parts)
    if kind in ("list", "shape"):
        if "-1" in port.file.code(parts):
            raise Left("size-or-number", "a part of size -1 is the rest in Paddle alone", "Write its size.")
        return
    axis = rewriting.code("axis") or "0"
    tensor = rewriting.tensor()
    simple = isinstance(tensor, (cst.Name, cst.Attribute)) and isinstance(parts, (cst.Name, cst.Attribute, cst.Integer))
    if tensor is None or kind != "number" or not simple:
        raise Left(
            "size-or-number",
            f"{port.file.code(parts)} is the size of each part in torch and MindSpore, and the number of parts in Paddle, if it is no list",
            "Keep the tensor in a variable and write a list of sizes.",
        )
    length, count = f"{port.file.code(tensor)}.shape[{axis}]", port.file.code(parts)
    if port.target.framework == "paddle":
        at = port.new_name("at")
        rewriting.replace(parts, f"[min({count}, {length} - {at}) for {at} in range(0, {length}, {count})]")
    else:
        rewriting.replace(parts, f"{length} // {count}")


def _port_chunk(rewriting: Rewriting) -> None:
    if rewriting.port.target.framework == "paddle":
        rewriting.report(
            rewriting.node,
            "chunk-must-be-even",
            "Paddle's chunk raises an error where the length is no multiple of the number of chunks, and others have a shorter last one",
            "Split it by a list of sizes if that can happen.",
        )


_DTYPES = {"bool": "bool", "int": "int64", "float": "float32"}


def _port_full(rewriting: Rewriting) -> None:
    """Write the dtype, which the frameworks choose in different ways where it is left out."""
    port = rewriting.port
    if rewriting.value("dtype") is not None:
        return
    literal = literal_of(rewriting.code("value") or "")
    kind = type(ast.literal_eval(literal)).__name__ if literal is not None else ""
    name = "float32" if port.source.framework == "paddle" else _DTYPES.get(kind)
    if name is None or (port.source.framework == "mindspore" and name != "int64"):
        raise Left(
            "dtype-not-given",
            f"without a dtype, full takes that of {rewriting.code('value')} in torch, float32 in Paddle, and a number's whole part in MindSpore",
            "Name the dtype, and port again.",
        )
    word = "bool_" if name == "bool" and port.target.framework == "mindspore" else name
    rewriting.added.append(f"dtype={rewriting.port.framework.spell(f'{port.target.framework}.{word}')}")


def _port_pad(rewriting: Rewriting) -> None:
    """Keep the order of dimensions: Paddle counts from the first one on if all are given, others always from the last one back."""
    port = rewriting.port
    if port.target.name == "paddle_3" and port.source.framework != "paddle":
        rewriting.added.append("pad_from_left_axis=False")
        return
    pad = rewriting.value("pad")
    last_alone = isinstance(pad, (cst.List, cst.Tuple)) and len(pad.elements) == 2
    first = next((each for each in rewriting.given if each.parameter.role == "first_axis_first"), None)
    if first is not None and port.file.code(first.value) == "False":
        rewriting.dropped.add(first.argument)
    elif port.target.name == "paddle_2" or not last_alone:
        raise Left(
            "pad-order",
            "Paddle pads from the first dimension on if all dimensions are given, and others from the last one back",
            "Write the pad in the order of the target.",
        )


def _port_order_of_ties(rewriting: Rewriting) -> None:
    """Leave out ``stable`` for MindSpore, whose functions have no such parameter."""
    stable = next((each for each in rewriting.given if each.parameter.role == "stable"), None)
    if stable is not None and rewriting.target.of_role("stable") is None:
        rewriting.dropped.add(stable.argument)
        why = f"{rewriting.port.target.framework} does not say in which order equal elements come"
        rewriting.report(stable.argument, "order-of-ties", why, "Look whether the code depends on it.")


def _port_seed(rewriting: Rewriting) -> None:
    """Leave the seed where only some functions are ported: the others draw numbers of the source's framework."""
    if rewriting.port.plan.scope != "files":
        why = f"code that stays may draw {rewriting.port.source.framework}'s random numbers, which this seeds"
        raise Left("random-numbers", why, "Seed each framework of which the program draws numbers.")


def _port_norm(rewriting: Rewriting) -> None:
    """Leave a norm of several dimensions by its order: it is one of the numbers in torch, and one of matrices elsewhere."""
    axis = rewriting.value("axis")
    if rewriting.value("p") is not None and axis is not None and rewriting.port.tensors.of(axis) != "number":
        raise Left("no-equivalent-argument", "norm of several dimensions is one of matrices elsewhere", "Write it out.")


def _port_argmax(rewriting: Rewriting) -> None:
    """Leave ``keepdim`` without a dimension for MindSpore, which keeps none then."""
    of_all = rewriting.value("keepdim") is not None and rewriting.value("axis") is None
    if of_all and "mindspore" in (rewriting.port.plan.source, rewriting.port.plan.target):
        raise Left("no-equivalent-argument", "MindSpore's keepdim wants a dimension", "Name the dimension.")


def _port_source(rewriting: Rewriting) -> None:
    """Leave a number that is scattered: torch takes it by another name, and MindSpore not at all."""
    source = rewriting.value("source")
    is_number = source is not None and rewriting.port.tensors.of(source) == "number"
    if is_number and rewriting.port.target.framework != "paddle":
        why = f"{rewriting.target.name.lstrip('.')} takes a tensor in place of the number {rewriting.code('source')}"
        raise Left("no-equivalent-argument", why, "Make a tensor of it.")


_BETWEEN_ALL = (_port_argmax, _port_full, _port_order_of_ties, _port_seed, _port_source)
_RULES = {
    "argmax": _port_argmax,
    "argmin": _port_argmax,
    "argsort": _port_order_of_ties,
    "chunk": _port_chunk,
    "full": _port_full,
    "manual_seed": _port_seed,
    "norm": _port_norm,
    "pad": _port_pad,
    "reshape": port_zeros,
    "scatter": _port_source,
    "scatter_": _port_source,
    "scatter_add": _port_source,
    "scatter_add_": _port_source,
    "sort": _port_order_of_ties,
    "split": _port_split,
    "sum": port_sum,
    "view": port_zeros,
}
