"""The two tables: which functions of the collective APIs do the same, and which of the frameworks' tensors; and their forms.

A form is one framework's function or method, with what each of its parameters means.

One of a collective API is written as the function's full name and its parameters' *roles* in the recorded order: ``paddle.distributed.all_reduce(tensor, op, group, ~background)``.
The roles of one row's forms are what a port goes by. Beside a role may stand

- ``~`` before it: the flag says the opposite;
- ``=`` and a value after it: what leaving the argument out means, where the recorded default does not say it, such as ``root=0`` for a None that is
  taken for rank 0;
- ``-`` in its place: nothing in another framework corresponds, unless it is left at its default.

One of tensors, whose signatures are not recorded, is written with its parameters: ``torch.cat(tensors, dim:axis=0)`` has the parameter ``dim`` with the
role ``axis`` and the default 0; without a colon, the name is the role. ``*`` before a parameter: its values may stand side by side. A ``*`` alone: what
follows has to be a keyword. ``reduce:!'add'``: the call always has this argument. What stands after the bracket is written behind the call; two forms with
``&`` between them are written as a tuple of two calls; ``=`` before a method: the tensor gets its result by ``copy_``. Code is never read by these three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.functions import COLLECTIVES, GROUPS, OBJECTS, POINT_TO_POINT
from shim.port.correspondences.tensors import FUNCTIONS, METHODS
from shim.record import Record, Signatures, parameters_of, read

_FORM = re.compile(r"(?P<name>[\w.]+)\((?P<parameters>.*)\)")
_TENSOR_FORM = re.compile(r"(?P<copied>=?)(?P<call>[\w.]+\([^()]*\))(?P<after>[^&]*)(?: & (?P<second>.*))?")

# Roles that are advice to the framework: without them, a call that succeeds has the same results.
_ADVISORY_NAMES = """
backend description device device_ids fallback init_method names_missing_ranks options rank store timeout world_size
"""
ADVISORY = frozenset(_ADVISORY_NAMES.split())


@dataclass(frozen=True)
class Parameter:
    """``default`` is what leaving it out means, in the words of its role (a literal, or such as ``any``); None where it must be given."""

    name: str
    role: str
    inverted: bool
    default: str | None
    fixed: str | None = None  # what the argument always is


@dataclass(frozen=True)
class Form:
    """``api`` is a name of ``APIS``. ``name`` begins with a dot if it is a method of tensors.

    The first ``positional`` parameters may be given by position. If ``is_variadic``, the values of the first may stand side by side.
    ``is_recorded`` if ``shim.record`` has the signature, so that no parameter is missing.
    """

    api: str
    name: str
    parameters: tuple[Parameter, ...]
    positional: int
    is_variadic: bool = False
    is_recorded: bool = True
    after: str = ""
    second: Form | None = None
    is_copied: bool = False

    @property
    def is_read(self) -> bool:
        """Whether code is read by the form, and not only written."""
        return not (self.after or self.second or self.is_copied)

    def of_role(self, role: str) -> Parameter | None:
        """Return the parameter that has *role*."""
        return next((parameter for parameter in self.parameters if parameter.role == role), None)

    def named(self, name: str) -> Parameter | None:
        """Return the parameter called *name*."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def taking(self, position: int, keyword: str | None) -> Parameter | None:
        """Return the parameter that takes an argument: the one at *position*, or the one called *keyword*."""
        if keyword is not None:
            return self.named(keyword)
        if self.is_variadic:
            return self.parameters[0]
        return self.parameters[position] if position < self.positional else None


def form_of(text: str, api: str) -> Form:
    """Return the form of *api*'s function that *text* says. Raises ValueError where it does not fit what is recorded."""
    name, tokens = _parts(text)
    names = [
        parameter for parameter in parameters_of(_signature(name, api)) if parameter.name not in ("self", "_ranks")
    ]
    if len(names) != len(tokens):
        raise ValueError(f"{text}: {name} of {api} has the parameters {', '.join(each.name for each in names)}")
    parameters = tuple(_parameter(each.name, each.default, token) for each, token in zip(names, tokens, strict=True))
    return Form(api, name, parameters, len(parameters))


def tensor_form_of(text: str, api: str) -> Form:
    """Return the form of a function or method of *api*'s tensors that *text* says."""
    match = _TENSOR_FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"not a form: {text}")
    name, tokens = _parts(match["call"])
    positional = tokens.index("*") if "*" in tokens else len(tokens)
    parameters = []
    for token in tokens:
        if token != "*":
            said, equals, default = token.removeprefix("*").partition("=")
            own, _, role = said.partition(":")
            fixed = role[1:] if role.startswith("!") else None
            role = "fixed" if fixed else role or own
            parameters.append(Parameter(own, role, False, default if equals else None, fixed))
    is_variadic = bool(tokens) and tokens[0].startswith("*") and tokens[0] != "*"
    second = tensor_form_of(match["second"], api) if match["second"] else None
    return Form(
        api,
        name,
        tuple(parameters),
        positional,
        is_variadic,
        is_recorded=False,
        after=match["after"],
        second=second,
        is_copied=bool(match["copied"]),
    )


def _parts(text: str) -> tuple[str, list[str]]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"not a form: {text}")
    return match["name"], [token.strip() for token in match["parameters"].split(",")] if match["parameters"] else []


def _parameter(name: str, default: str | None, token: str) -> Parameter:
    role, _, said = token.partition("=")
    inverted = role.startswith("~")
    meaning = said or default
    if inverted and not said:
        meaning = {"True": "False", "False": "True"}.get(str(default), default)
    return Parameter(name, role.removeprefix("~"), inverted, meaning)


def _signature(name: str, api: str) -> str:
    record = recorded(name, api)
    if record is None:
        raise ValueError(f"{name} is not recorded of {api}")
    text = record if isinstance(record, str) else record.get("__init__", "()")
    return text if text.startswith("(") else "()"


def recorded(name: str, api: str) -> Record | None:
    """Return what is recorded of *name*, a canonical path, in *api*; None where nothing is."""
    return _by_name(api).get(name)


@cache
def _by_name(api: str) -> Mapping[str, Record]:
    found: dict[str, Record] = {}
    signatures: Signatures = read(APIS[api].record)
    for module, names in signatures.modules.items():
        for name, record in names.items():
            found.setdefault(APIS[api].canonical(f"{module}.{name}"), record)
            found.setdefault(f"{module}.{name}", record)
    return found


def said_of(texts: Iterable[str], api: str) -> list[str]:
    """Return those of *texts* that are of *api*.

    Before a colon, which is left out, stand the APIs or frameworks whose text it is. Without one, it begins with the framework, or is everybody's if it
    begins with a place in braces.
    """
    found = []
    for text in texts:
        said, colon, rest = text.partition(": ")
        of = said.split() if colon else [text.partition(".")[0]]
        if api in of or APIS[api].framework in of or text.startswith("{"):
            found.append(rest if colon else text)
    return found


def kind_of(texts: Sequence[str]) -> str:
    """Return the kind of what a row of tensors gives: its first word, or a tensor."""
    return texts[0] if texts[0].isalpha() else "tensor"


class Table:
    """``rows`` have the forms of all APIs, as *parse* reads them. The first form of an API is the one to write."""

    def __init__(self, rows: Mapping[str, Sequence[str]], parse: Callable[[str, str], Form]) -> None:
        self.rows = rows
        self._parse = parse
        self._forms: dict[str, Mapping[str, Sequence[Form]]] = {}
        self._names: dict[str, Mapping[str, Sequence[tuple[str, Form]]]] = {}

    def forms_of(self, row: str, api: str) -> Sequence[Form]:
        """Return the forms that *api* has of *row*; none where it has no equivalent."""
        if api not in self._forms:
            self._forms[api] = {
                row: [self._parse(text, api) for text in said_of(texts, api)] for row, texts in self.rows.items()
            }
        return self._forms[api][row]

    def rows_with(self, name: str, api: str) -> Sequence[tuple[str, Form]]:
        """Return the rows that have the function *name*, a canonical path, of *api*, each with its form. Several where its arguments decide."""
        if api not in self._names:
            found: dict[str, list[tuple[str, Form]]] = {}
            for row in self.rows:
                for form in self.forms_of(row, api):
                    if form.is_read:
                        found.setdefault(form.name, []).append((row, form))
            self._names[api] = found
        return self._names[api].get(name, ())


_TABLE = Table({**COLLECTIVES, **POINT_TO_POINT, **OBJECTS, **GROUPS}, form_of)
TENSORS = Table({**FUNCTIONS, **{f".{row}": texts for row, texts in METHODS.items()}}, tensor_form_of)
forms_of = _TABLE.forms_of
rows_with = _TABLE.rows_with


def form_for(row: str, source: Form, target: str) -> Form | None:
    """Return the form to write for *source*, a form of *row*; None for none.

    It is the one of the same name, as between versions of a framework, or the first. Private functions are not everywhere in the same module.
    """
    forms = forms_of(row, target)
    same = (form for form in forms if form.name == source.name and "._" not in form.name)
    return next(same, forms[0] if forms else None)


def tensor_rows(name: str, api: str) -> Sequence[tuple[str, Form]]:
    """Return the rows of *api*'s function *name* or, where it begins with a dot, of that method of its tensors, each with its form."""
    return TENSORS.rows_with(name, api)


def result_of(row: str) -> str:
    """Return the kind of what a call of *row* of tensors returns."""
    return kind_of(TENSORS.rows[row])
