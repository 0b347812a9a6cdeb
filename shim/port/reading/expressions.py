"""What calls and expressions show by themselves: which parameters the arguments are for, also those in a dictionary, flags, literals and lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import libcst as cst

from shim.port.correspondences.table import Form, Parameter
from shim.port.reading.source_file import SourceFile, below


def passed(call: cst.Call, form: Form) -> Iterator[tuple[cst.BaseExpression, Parameter]]:
    """Yield what *call* passes to the parameters of *form*, up to an argument that unpacks others."""
    for position, argument in enumerate(call.args):
        if argument.star:
            return
        parameter = form.taking(position, None if argument.keyword is None else argument.keyword.value)
        if parameter is not None:
            yield argument.value, parameter


def discarded(statement: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield each expression whose value *statement* drops: its own, both branches of a choice, the element of a list."""
    found = [statement.value] if isinstance(statement, cst.Expr) else []
    for value in found:
        yield value
        if isinstance(value, cst.IfExp):
            found += [value.body, value.orelse]
        elif isinstance(value, cst.ListComp):
            found.append(value.elt)


def unpacked(file: SourceFile, argument: cst.Arg) -> Mapping[str, cst.DictElement | cst.Arg] | None:
    """Return what the dictionary in *argument*, ``**value``, gives, by the keyword; None where the source does not show all of it.

    A variable shows it if it is assigned once, a dictionary that names nothing of the API, and used only here.
    """
    if argument.star != "**":
        return None
    value = argument.value
    if not isinstance(value, cst.Name):
        return _elements(value)
    values = file.values_of(value)
    if values is None or len(values) != 1 or file.references(value) != 1:
        return None
    elements = _elements(values[0])
    if elements is None or any(file.imported(node) for each in elements.values() for node in below(each.value)):
        return None
    return elements


def _elements(value: cst.BaseExpression) -> Mapping[str, cst.DictElement | cst.Arg] | None:
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "dict":
        named = {each.keyword.value: each for each in value.args if each.keyword is not None}
        return named if len(named) == len(value.args) else None
    if not isinstance(value, cst.Dict):
        return None
    found: dict[str, cst.DictElement | cst.Arg] = {}
    for element in value.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        if element.key.prefix or not element.key.raw_value.isidentifier():
            return None
        found[element.key.raw_value] = element
    return found if len(found) == len(value.elements) else None


def literal_of(code: str) -> str | None:
    """Return the literal that *code* is, in Python's own spelling; None where it is no literal."""
    try:
        return repr(ast.literal_eval(code.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def is_closed(value: cst.BaseExpression, *others: type[cst.CSTNode]) -> bool:
    """Tell whether an operator, an index or a member may be written beside *value* without brackets round it; also if it is one of *others*."""
    return isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, *others)) or bool(value.lpar)


def flag_of(value: cst.BaseExpression) -> bool | None:
    """Return the flag that *value* is, None where the source does not say."""
    if isinstance(value, cst.Name) and value.value in ("True", "False"):
        return value.value == "True"
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not):
        inner = flag_of(value.expression)
        return None if inner is None else not inner
    return None


def is_list(value: cst.BaseExpression) -> bool | None:
    """Tell whether *value* is a list or a tuple; None where its form does not show that."""
    if isinstance(value, (cst.List, cst.Tuple, cst.ListComp)):
        return True
    if isinstance(value, cst.BinaryOperation):
        answers = (is_list(value.left), is_list(value.right))
        return True if True in answers else (False if False in answers else None)
    if isinstance(value, cst.Call):
        function = value.func
        last = function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", "")
        if last in ("list", "tuple", "split", "chunk", "unbind", "unstack", "tensor_split"):
            return True
        return False if last in _MAKES_A_TENSOR else None
    return None


_MAKES_A_TENSOR_NAMES = """
arange empty empty_like full full_like ones ones_like rand randn zeros zeros_like
cat clone concat concatenate contiguous flatten new_empty new_zeros pad reshape stack to view
tensor Tensor to_tensor
"""
_MAKES_A_TENSOR = frozenset(_MAKES_A_TENSOR_NAMES.split())
