"""One call's way from the source's parameters to the target's: which parameter each argument is for, and what is changed.

Arguments stay where they are, in their order, so that layout, comments and the order of evaluation stay too: where the target has another order of
parameters, they become keywords.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from shim.port.correspondences.table import Form, Parameter
from shim.port.plan import Left
from shim.port.reading.expressions import unpacked
from shim.port.rules.port import Port

_COMMA = re.compile(rb"\s*,")


@dataclass(frozen=True)
class Given:
    """An argument of the call, and the source's parameter that it is for. ``element`` is what gives it in a dictionary that the argument unpacks."""

    argument: cst.Arg
    parameter: Parameter
    element: cst.DictElement | cst.Arg | None = None

    @property
    def value(self) -> cst.BaseExpression:
        return self.argument.value if self.element is None else self.element.value

    @property
    def keyword(self) -> cst.BaseExpression | None:
        given = self.argument if self.element is None else self.element
        return given.key if isinstance(given, cst.DictElement) else given.keyword


def bind(port: Port, arguments: Sequence[cst.Arg], form: Form) -> list[Given]:
    """Return the arguments with their parameters. Raises Left where the source does not say which they are."""
    given = []
    for position, argument in enumerate(arguments):
        if argument.star and not (argument.star == "*" and form.is_variadic):
            elements = unpacked(port.file, argument) if form.is_recorded else None
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
    if parameter is not None:
        return parameter
    code, name = port.file.code(node), form.name.lstrip(".")
    if form.is_recorded:
        advice = "The call does not fit the source framework's signature: was it written for another version?"
        raise Left("unknown-argument", f"{name} has no parameter for {code}", advice)
    why = f"{code} of {name} is not in the table of tensors' functions"
    raise Left("no-equivalent-argument", why, "Port this call by hand.")


def hidden(port: Port, argument: cst.Arg, form: Form) -> Left:
    """Return why a call is left whose *argument* unpacks what the source does not show."""
    return Left(
        "unpacked-arguments",
        f"{port.file.code(argument)} hides which arguments {form.name.lstrip('.')} gets",
        "Write the arguments out, or check by hand that the target takes the same names and order.",
    )


@dataclass
class Rewriting:
    """The changes of the call *node*, made by ``make`` once nothing speaks against them. *spell* writes a name of the target in place of the function's.

    ``given`` are the arguments that are still to be ported, ``arguments`` all of them.
    """

    port: Port
    node: cst.Call
    arguments: Sequence[cst.Arg]
    given: list[Given]
    source: Form
    target: Form
    spell: Callable[[str], str]
    changes: list[Callable[[], object]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    dropped: set[cst.Arg] = field(default_factory=set)
    without_effect: list[tuple[str, str]] = field(default_factory=list)  # what is dropped with a remark, and the advice

    def value(self, role: str) -> cst.BaseExpression | None:
        """Return the value of the argument with *role*; None where it is not given."""
        return next((each.value for each in self.given if each.parameter.role == role), None)

    def code(self, role: str) -> str | None:
        """Return the source of the argument with *role*; None where it is not given."""
        value = self.value(role)
        return None if value is None else self.port.file.code(value)

    def tensor(self) -> cst.BaseExpression | None:
        """Return the tensor whose method is called, or that the function gets."""
        is_method = self.source.name.startswith(".") and isinstance(self.node.func, cst.Attribute)
        return cst.ensure_type(self.node.func, cst.Attribute).value if is_method else self.value("tensor")

    def replace(self, node: cst.CSTNode, text: str) -> None:
        """Write *text* in place of *node*."""
        start, end = self.port.file.span(node)
        self.changes.append(lambda: self.port.edits.replace(start, end, text))
        self.changes.append(lambda: self.port.done.add(node))

    def around(self, start: int, end: int, before: str, after: str) -> None:
        """Write *before* at *start* and *after* at *end*, where something ends."""
        self.changes.append(lambda: self.port.edits.insert(start, before))
        if after:
            self.changes.append(lambda: self.port.edits.insert_after(end, after))

    def report(self, node: cst.CSTNode, rule: str, why: str, advice: str) -> None:
        """Report a change, once it is made."""
        self.changes.append(lambda: self.port.changed(node, rule, why, advice))

    def place_arguments(
        self,
        parameter_for: Callable[[Given], Parameter | None],
        convert: Callable[[Given, Parameter], None],
        leading: int = 0,
    ) -> None:
        """Give each argument the place of the target's parameter *parameter_for* it, after *leading* new ones, and *convert* it; drop it where that is None."""
        keywords = False
        for position, each in enumerate(self.given, start=leading):
            found = None if each.argument in self.dropped else parameter_for(each)
            if found is None:
                if each.element is not None:
                    raise hidden(self.port, each.argument, self.source)
                self.dropped.add(each.argument)
                keywords = True
                continue
            place = self.target.parameters.index(found)
            keywords = keywords or place != position or place >= self.target.positional
            is_first = self.source.is_variadic and each.parameter is self.source.parameters[0] and place == 0
            if each.keyword is not None:
                if each.parameter.name != found.name:
                    quote = each.keyword.quote if isinstance(each.keyword, cst.SimpleString) else ""
                    self.replace(each.keyword, f"{quote}{found.name}{quote}")
            elif keywords and not is_first:
                self._insert_keyword(each.argument, found.name)
            convert(each, found)

    def _insert_keyword(self, argument: cst.Arg, name: str) -> None:
        start = self.port.file.span(argument).start
        self.changes.insert(0, lambda: self.port.edits.insert(start, f"{name}="))

    def make(self) -> None:
        """Make the changes, take the dropped arguments out, with one comma each, and write those that are added."""
        for change in self.changes:
            change()
        if self.without_effect:
            what = ", ".join(" ".join(code.split()) for code, _ in self.without_effect)
            advice = " ".join(dict.fromkeys(advice for _, advice in self.without_effect))
            why = f"{self.target.name} has no parameter for {what}"
            self.port.changed(self.node, "argument-without-effect", why, advice)
        edits, end = self.port.edits, self.port.file.span(self.node).end - 1
        spans = [self.port.file.span(each) for each in self.arguments]
        kept = [position for position, each in enumerate(self.arguments) if each not in self.dropped]
        if self.dropped and not kept:
            self._remove(self._start_of_all(spans[0].start), end, "alone")
        elif self.dropped:
            for position, each in enumerate(self.arguments[: kept[-1]]):
                if each in self.dropped:
                    self._remove(spans[position].start, spans[position + 1].start, "before")
            if kept[-1] < len(spans) - 1:
                self._remove(spans[kept[-1]].end, spans[-1].end, "after")
        if self.added:
            text = ", ".join(self.added)
            if kept:
                edits.insert_after(spans[kept[-1]].end, f", {text}")
            else:
                edits.insert_after(end, text)

    def _remove(self, start: int, end: int, place: str) -> None:
        """Take out the arguments from *start* to *end*, and keep the comments between them: before others, after others, or alone in the brackets."""
        file, code = self.port.file, self.port.file.text[start:end].decode()
        tokens = tokenize.generate_tokens(io.StringIO(f"({code}\n)").readline) if "#" in code else ()
        comments = [token for token in tokens if token.type == tokenize.COMMENT]
        if comments:
            newline = file.module.default_newline
            line = newline + file.indent(self.port.file.span(self.arguments[-1]).start)
            text = line.join(comment.string for comment in comments)
            if place == "before":
                text += line
            elif place == "alone":
                text = f"{line}{text}{newline}{file.indent(end)}"
            else:
                text = f",{'  ' if comments[0].start[0] == 1 else line}{text}"
                comma = _COMMA.match(file.text, end)
                end = end if comma is None else comma.end()
                if file.text[end:].lstrip(b" \t")[:1] not in (b"#", b"\r", b"\n"):
                    text += newline + file.indent(end)
            self.port.edits.insert(start, text)
        self.port.edits.remove(start, end)

    def _start_of_all(self, first: int) -> int:
        """Return where the arguments start, the first of which is at *first*: behind the bracket, with the blanks there."""
        before = self.port.file.text[:first].rstrip()
        return len(before) if before.endswith(b"(") and self.source.is_recorded else first
