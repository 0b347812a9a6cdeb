"""The two tables: which functions of the collective APIs do the same, and which of the frameworks' tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shim.port.correspondences.forms import Form, form_of, said_of, tensor_form_of
from shim.port.correspondences.functions import COLLECTIVES, GROUPS, OBJECTS, POINT_TO_POINT
from shim.port.correspondences.tensor_functions import FUNCTIONS, METHODS


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


def tensor_row(name: str, api: str) -> tuple[str, Form] | None:
    """Return the row of *api*'s function *name* or, where it begins with a dot, of that method of its tensors, with its form."""
    return next(iter(TENSORS.rows_with(name, api)), None)


def result_of(row: str) -> str:
    """Return the kind of what a call of *row* of tensors returns."""
    return TENSORS.rows[row][0]
