"""Which of a function's parameters each argument of a call is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from shim.port.correspondences import Form, Parameter
from shim.port.plan import Left
from shim.port.reading import unpacked
from shim.port.rules.port import Port


@dataclass(frozen=True)
class Given:
    """An argument of the call, and the source's parameter that it is for. ``element`` is what gives it in a dictionary that the argument unpacks."""

    argument: cst.Arg
    parameter: Parameter
    element: cst.DictElement | None = None

    @property
    def value(self) -> cst.BaseExpression:
        return self.argument.value if self.element is None else self.element.value

    @property
    def keyword(self) -> cst.BaseExpression | None:
        return self.argument.keyword if self.element is None else self.element.key


def bind(port: Port, arguments: Sequence[cst.Arg], form: Form) -> list[Given]:
    """Return the arguments with their parameters. Raises Left where the source does not say which they are."""
    given = []
    for position, argument in enumerate(arguments):
        if argument.star:
            elements = unpacked(port.file, argument)
            if elements is None:
                raise hidden(port, argument, form)
            given += [
                Given(argument, _known(port, form, form.named(key), each), each) for key, each in elements.items()
            ]
        else:
            keyword = None if argument.keyword is None else argument.keyword.value
            given.append(Given(argument, _known(port, form, form.taking(position, keyword), argument)))
    return given


def _known(port: Port, form: Form, parameter: Parameter | None, node: cst.CSTNode) -> Parameter:
    if parameter is None:
        raise Left(
            "unknown-argument",
            f"{form.name} has no parameter for {port.file.code(node)}",
            "The call does not fit the source framework's signature: was it written for another version?",
        )
    return parameter


def hidden(port: Port, argument: cst.Arg, form: Form) -> Left:
    """Return why a call is left whose *argument* unpacks what the source does not show."""
    return Left(
        "unpacked-arguments",
        f"{port.file.code(argument)} hides which arguments {form.name.lstrip('.')} gets",
        "Write the arguments out, or check by hand that the target takes the same names and order.",
    )
