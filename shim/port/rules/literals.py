"""Values that can be read from the source, and how an expression may stand in another one."""

from __future__ import annotations

import ast

import libcst as cst


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


_MAKES_A_TENSOR = frozenset(
    (
        *(
            "arange",
            "empty",
            "empty_like",
            "full",
            "full_like",
            "ones",
            "ones_like",
            "rand",
            "randn",
            "zeros",
            "zeros_like",
        ),
        *(
            "cat",
            "clone",
            "concat",
            "concatenate",
            "contiguous",
            "flatten",
            "new_empty",
            "new_zeros",
            "pad",
            "reshape",
            "stack",
            "to",
            "view",
        ),
        *("tensor", "Tensor", "to_tensor"),
    )
)
