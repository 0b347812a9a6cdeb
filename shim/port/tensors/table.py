"""The table of what is the same of the frameworks' tensors, parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from shim.port import correspondences
from shim.port.apis import APIS
from shim.port.correspondences import Parameter
from shim.port.tensors.functions import FUNCTIONS
from shim.port.tensors.members import MEMBERS, METHODS

__all__ = ["Form", "Parameter", "forms_of", "method_row", "result_of", "row_of", "templates_of"]

_FORM = re.compile(r"(?P<name>[\w.]+)\((?P<parameters>.*)\)")


@dataclass(frozen=True)
class Form(correspondences.Form):
    """A function or, where ``name`` begins with a dot, a method. The first ``positional`` parameters may be given by position.

    If ``is_variadic``, the values of the first may stand side by side.
    """

    positional: int
    is_variadic: bool

    def taking(self, position: int, keyword: str | None) -> Parameter | None:
        if keyword is None and self.is_variadic:
            return self.parameters[0]
        return super().taking(position, keyword) if keyword is not None or position < self.positional else None


def forms_of(row: str, api: str) -> Sequence[Form]:
    """Return *api*'s forms of *row*, the first to be written. The row of a method begins with a dot."""
    return _forms(api).get(row, ())


def row_of(name: str, api: str) -> tuple[str, Form] | None:
    """Return the row of *api*'s function *name*, with its form."""
    return _by_name(api).get(name)


def method_row(name: str, api: str) -> tuple[str, Form] | None:
    """Return the row of the method *name* of *api*'s tensors, with its form."""
    return _by_name(api).get(f".{name}")


def templates_of(row: str, api: str) -> Sequence[str]:
    """Return how *api* writes the member *row*, the first to be written."""
    return _templates(api).get(row, ())


def result_of(row: str) -> str:
    """Return the kind of what a call of *row* returns."""
    if row.startswith("."):
        return METHODS[row[1:]][0]
    return FUNCTIONS[row][0]


@cache
def _forms(api: str) -> Mapping[str, Sequence[Form]]:
    found: dict[str, list[Form]] = {}
    for dot, table in (("", FUNCTIONS), (".", METHODS)):
        for row, (_, *texts) in table.items():
            for text in texts:
                if (form := _stripped(text, api)) is not None:
                    found.setdefault(dot + row, []).append(_parsed(form, api))
    return found


@cache
def _by_name(api: str) -> Mapping[str, tuple[str, Form]]:
    found: dict[str, tuple[str, Form]] = {}
    for row, forms in _forms(api).items():
        for form in forms:
            found.setdefault(form.name, (row, form))
    return found


@cache
def _templates(api: str) -> Mapping[str, Sequence[str]]:
    return {
        row: [text for text in (_stripped(each, api) for each in texts) if text is not None]
        for row, (_, *texts) in MEMBERS.items()
    }


def _stripped(text: str, api: str) -> str | None:
    """Return the form without the API before it; None if it is of another."""
    said, colon, form = text.partition(": ")
    if not colon:
        said, form = text.partition(".")[0], text
    return form if said in (api, APIS[api].framework) else None


def _parsed(text: str, api: str) -> Form:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"not a form: {text}")
    tokens = [token.strip() for token in match["parameters"].split(",")]
    names = [token for token in tokens if token != "*"]
    positional = tokens.index("*") if "*" in tokens else len(tokens)
    parameters = tuple(_parameters(names))
    return Form(api, match["name"], parameters, positional, names[0].startswith("*"))


def _parameters(tokens: Sequence[str]) -> Iterator[Parameter]:
    for token in tokens:
        said, equals, default = token.removeprefix("*").partition("=")
        name, _, role = said.partition(":")
        yield Parameter(name, role or name, False, default if equals else None)
