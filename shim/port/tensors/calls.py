"""Calls of tensors' functions and methods whose arguments have defaults."""

from __future__ import annotations

import ast

import libcst as cst

from shim.port.plan import Left
from shim.port.rules.literals import is_list, literal_of
from shim.port.tensors.arguments import Context, Rewriting, bind
from shim.port.tensors.integers import port_sum
from shim.port.tensors.shapes import port_zeros
from shim.port.tensors.table import Form, forms_of

_LISTS_ALONE = ("mindspore.ops.full",)


def port_tensor_call(context: Context, node: cst.Call, row: str, source: Form) -> None:
    """Port *node*, a call of the function or, where *row* begins with a dot, the method of *row*. Raises Left, and changes nothing, where it cannot."""
    port = context.port
    forms = forms_of(row, port.plan.target)
    if not forms:
        raise Left(
            "no-equivalent",
            f"{port.target.framework} has no equivalent of {source.name.lstrip('.')}",
            "Write by hand what the code needs of it.",
        )
    target = forms[0]
    rewriting = Rewriting(context, node, source, target, bind(port, node.args, source))
    _port_shape(rewriting)
    rule = _RULES.get(row.lstrip("."))
    frameworks = {port.source.framework, port.target.framework}
    if rule is not None and len(frameworks) == 2 and ("paddle" in frameworks or rule is _port_full):
        rule(rewriting)
    rewriting.port_arguments()
    if target.name.startswith("."):
        assert isinstance(node.func, cst.Attribute)
        rewriting.replace(node.func.attr, target.name[1:])
    else:
        rewriting.replace(node.func, context.imports.spell(target.name))
    rewriting.make()
    port.places += 1


def _port_shape(rewriting: Rewriting) -> None:
    """Put brackets round a shape whose numbers stand side by side, or that is one number, where the target wants a list."""
    context, target = rewriting.context, rewriting.target
    shape = [argument for argument, parameter in rewriting.given if parameter.role == "shape"]
    if not shape or target.is_variadic:
        return
    is_number = context.kinds.of(shape[0].value) == "number"
    side_by_side = rewriting.source.is_variadic and (len(shape) > 1 or bool(shape[0].star))
    if side_by_side or is_number:
        rewriting.around(shape[0] if shape[0].keyword is None else shape[0].value, shape[-1], "[", "]")
        # from here on they are one argument, the first
        rewriting.given = [rewriting.given[0], *rewriting.given[len(shape) :]]
    elif target.name in _LISTS_ALONE or context.port.plan.target == "paddle_2":
        kind = context.kinds.of(shape[0].value)
        if kind is None and not is_list(shape[0].value):
            rewriting.report(
                shape[0],
                "shape-may-be-number",
                f"{target.name.lstrip('.')} takes a list of numbers, and {context.port.file.code(shape[0])} may be one number",
                "Put it into brackets if it is a number.",
            )


def _port_split(rewriting: Rewriting) -> None:
    """Port the parts, which are sizes or, in Paddle, a number of parts where others have the size of each."""
    context = rewriting.context
    parts = rewriting.value("parts")
    if parts is None:
        return
    kind = "list" if is_list(parts) else context.kinds.of(parts)
    if kind in ("list", "shape"):
        if "-1" in context.port.file.code(parts):
            raise Left("size-or-number", "a part of size -1 is the rest in Paddle alone", "Write its size.")
        return
    axis = rewriting.code("axis") or "0"
    tensor = rewriting.tensor()
    simple = isinstance(tensor, (cst.Name, cst.Attribute)) and isinstance(parts, (cst.Name, cst.Attribute, cst.Integer))
    if tensor is None or kind != "number" or not simple:
        raise Left(
            "size-or-number",
            f"{context.port.file.code(parts)} is the size of each part in torch and MindSpore, and the number of parts in Paddle, if it is no list",
            "Keep the tensor in a variable and write a list of sizes.",
        )
    length, count = f"{context.port.file.code(tensor)}.shape[{axis}]", context.port.file.code(parts)
    if context.port.target.framework == "paddle":
        at = "at"
        while at in context.port.file.words:
            at += "_"
        rewriting.replace(parts, f"[min({count}, {length} - {at}) for {at} in range(0, {length}, {count})]")
    else:
        rewriting.replace(parts, f"{length} // {count}")


def _port_chunk(rewriting: Rewriting) -> None:
    if rewriting.context.port.target.framework == "paddle":
        rewriting.report(
            rewriting.node,
            "chunk-must-be-even",
            "Paddle's chunk raises an error where the length is no multiple of the number of chunks, and others have a shorter last one",
            "Split it by a list of sizes if that can happen.",
        )


_DTYPES = {"bool": "bool", "int": "int64", "float": "float32"}


def _port_full(rewriting: Rewriting) -> None:
    """Write the dtype, which the frameworks choose in different ways where it is left out."""
    port = rewriting.context.port
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
    rewriting.added.append(f"dtype={rewriting.context.imports.spell(f'{port.target.framework}.{word}')}")


def _port_pad(rewriting: Rewriting) -> None:
    """Keep the order of dimensions: Paddle counts from the first one on if all are given, others always from the last one back."""
    port = rewriting.context.port
    if port.target.name == "paddle_3" and port.source.framework != "paddle":
        rewriting.added.append("pad_from_left_axis=False")
        return
    pad = rewriting.value("pad")
    last_alone = isinstance(pad, (cst.List, cst.Tuple)) and len(pad.elements) == 2
    first = next(
        ((argument, parameter) for argument, parameter in rewriting.given if parameter.role == "first_axis_first"), None
    )
    if first is not None and port.file.code(first[0].value) == "False":
        rewriting.drop(first[0])
    elif port.target.name == "paddle_2" or not last_alone:
        raise Left(
            "pad-order",
            "Paddle pads from the first dimension on if all dimensions are given, and others from the last one back",
            "Write the pad in the order of the target.",
        )


_RULES = {
    "chunk": _port_chunk,
    "full": _port_full,
    "pad": _port_pad,
    "reshape": port_zeros,
    "split": _port_split,
    "sum": port_sum,
    "view": port_zeros,
}
