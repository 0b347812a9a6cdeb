"""One call's arguments, from the source's parameters to the target's. They stay where they are; what has another place becomes a keyword."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from shim.port.correspondences import Parameter
from shim.port.plan import Left
from shim.port.rules import Port
from shim.port.rules.given import hidden
from shim.port.rules.literals import literal_of
from shim.port.tensors.imports import Imports
from shim.port.tensors.inference.kinds import TensorKinds
from shim.port.tensors.names import dtype_of
from shim.port.tensors.table import Form


@dataclass
class Context:
    """What the rules of statements work with. ``done`` are the nodes that a rule has written or taken out."""

    port: Port
    kinds: TensorKinds
    imports: Imports
    done: set[cst.CSTNode] = field(default_factory=set)


@dataclass
class Rewriting:
    """The changes of a call from ``source`` to ``target``, made by ``make`` once nothing speaks against them."""

    context: Context
    node: cst.Call
    source: Form
    target: Form
    given: list[tuple[cst.Arg, Parameter]]
    edits: list[Callable[[], object]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    dropped: set[cst.Arg] = field(default_factory=set)

    def value(self, role: str) -> cst.BaseExpression | None:
        return next((argument.value for argument, parameter in self.given if parameter.role == role), None)

    def code(self, role: str) -> str | None:
        value = self.value(role)
        return None if value is None else self.context.port.file.code(value)

    def values(self, role: str) -> list[cst.BaseExpression]:
        """Return all values of a parameter, also those that stand side by side."""
        arguments = bind(self.context.port, self.node.args, self.source)
        return [argument.value for argument, parameter in arguments if parameter.role == role]

    def tensor(self) -> cst.BaseExpression | None:
        """Return the tensor whose method it is, or that the function gets."""
        if self.source.name.startswith(".") and isinstance(self.node.func, cst.Attribute):
            return self.node.func.value
        return self.value("tensor")

    def replace(self, node: cst.CSTNode, text: str) -> None:
        start, end = self.context.port.file.span(node)
        self.edits.append(lambda: self.context.port.edits.replace(start, end, text))
        self.edits.append(lambda: self.context.done.add(node))

    def around(self, first: cst.CSTNode, last: cst.CSTNode, before: str, after: str) -> None:
        start, end = self.context.port.file.span(first).start, self.context.port.file.span(last).end
        self.edits.append(lambda: self.context.port.edits.insert(start, before))
        self.edits.append(lambda: self.context.port.edits.insert_after(end, after))

    def drop(self, argument: cst.Arg) -> None:
        self.dropped.add(argument)

    def report(self, node: cst.CSTNode, rule: str, why: str, advice: str) -> None:
        """Report a change, once it is made."""
        self.edits.append(lambda: self.context.port.report(node, "changed", rule, why, advice))

    def port_arguments(self) -> None:
        """Give each argument its place. Raises Left where the target has none for it."""
        keywords = False
        for position, (argument, parameter) in enumerate(self.given):
            if argument in self.dropped:
                keywords = True
                continue
            found = self._target_of(argument, parameter)
            if found is None:
                self.drop(argument)
                keywords = True
                continue
            place = self.target.parameters.index(found)
            keywords = keywords or place != position or place >= self.target.positional
            if argument.keyword is not None:
                if argument.keyword.value != found.name:
                    self.replace(argument.keyword, found.name)
            elif keywords and not (self.source.is_variadic and parameter is self.source.parameters[0] and place == 0):
                start = self.context.port.file.span(argument).start
                name = found.name
                self.edits.insert(0, lambda start=start, name=name: self.context.port.edits.insert(start, f"{name}="))  # type: ignore[misc]
            if parameter.role == "dtype":
                self._port_dtype(argument)

    def _target_of(self, argument: cst.Arg, parameter: Parameter) -> Parameter | None:
        found = self.target.of_role(parameter.role)
        code = self.context.port.file.code(argument.value)
        if parameter.default is not None and literal_of(code) == literal_of(parameter.default):
            other = None if found is None else found.default
            if other is None or literal_of(other) != literal_of(parameter.default):
                return None
        if found is not None:
            return found
        if parameter.role == "device":
            self.report(
                argument,
                "device-not-given",
                f"{self.target.name.lstrip('.')} makes the tensor on the current device, and {parameter.name}={code} was left out",
                "Have the program set the device of each rank once, when it starts.",
            )
            return None
        raise Left(
            "no-equivalent-argument",
            f"{self.target.name.lstrip('.')} has no parameter for {parameter.name}={code}",
            f"Write the call without {parameter.name}, or do by other calls what it does.",
        )

    def _port_dtype(self, argument: cst.Arg) -> None:
        port, value = self.context.port, argument.value
        if port.source.framework != "paddle" or port.target.framework == "paddle":
            return
        code, kind = port.file.code(value), self.context.kinds.of(value)
        literal = literal_of(code)
        name = dtype_of(literal.strip("'"), port.plan.target) if literal is not None else None
        if name is not None:
            self.replace(value, self.context.imports.spell(name))
        elif kind == "text":
            raise Left(
                "dtype-as-string",
                f"{code} is a string, and {port.target.framework} takes dtypes alone",
                f"Name the dtype of {port.target.framework}.",
            )
        elif kind is None and port.file.imported(value) is None and not code.endswith(".dtype") and code != "None":
            self.report(
                argument,
                "dtype-as-string",
                f"{code} may be a string, and {port.target.framework} takes dtypes alone",
                "Have it be a dtype of the framework.",
            )

    def make(self) -> None:
        """Make the changes."""
        for edit in self.edits:
            edit()
        arguments = list(self.node.args)
        kept = [position for position, each in enumerate(arguments) if each not in self.dropped]
        spans = [self.context.port.file.span(each) for each in arguments]
        edits, end = self.context.port.edits, self.context.port.file.span(self.node).end - 1
        for each in self.dropped:
            self.context.done.add(each)
        if self.dropped and not kept:
            edits.remove(spans[0].start, end)
        for position, argument in enumerate(arguments):
            if argument in self.dropped and kept and position < kept[-1]:
                edits.remove(spans[position].start, spans[position + 1].start)
        if kept and kept[-1] < len(arguments) - 1:
            edits.remove(spans[kept[-1]].end, spans[-1].end)
        if self.added:
            text = ", ".join(self.added)
            if kept:
                edits.insert_after(spans[kept[-1]].end, f", {text}")
            else:
                edits.insert_after(end, text)


def bind(port: Port, arguments: Sequence[cst.Arg], form: Form) -> list[tuple[cst.Arg, Parameter]]:
    """Return the arguments with their parameters. Raises Left where the source does not say which they are."""
    given = []
    for position, argument in enumerate(arguments):
        if argument.star and not (argument.star == "*" and form.is_variadic):
            raise hidden(port, argument, form)
        parameter = form.taking(position, None if argument.keyword is None else argument.keyword.value)
        if parameter is None:
            raise Left(
                "no-equivalent-argument",
                f"{port.file.code(argument)} of {form.name.lstrip('.')} is not in the table of tensors' functions",
                "Port this call by hand.",
            )
        given.append((argument, parameter))
    return given
