"""The table: which functions of the APIs do the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.forms import Form, form_of
from shim.port.correspondences.functions import COLLECTIVES, GROUPS, OBJECTS, POINT_TO_POINT

TABLE: Mapping[str, Sequence[str]] = {**COLLECTIVES, **POINT_TO_POINT, **OBJECTS, **GROUPS}


@cache
def forms_of(row: str, api: str) -> tuple[Form, ...]:
    """Return the forms that *api* has of *row*. The first is the one to write; none where it has no equivalent."""
    return tuple(form_of(text, api) for text in TABLE[row] if api in _apis_of(text))


def form_for(row: str, source: Form, target: str) -> Form | None:
    """Return the form to write for *source*, a form of *row*; None for none.

    It is the one of the same name, as between versions of a framework, or the first. Private functions are not everywhere in the same module.
    """
    forms = forms_of(row, target)
    same = (form for form in forms if form.name == source.name and "._" not in form.name)
    return next(same, forms[0] if forms else None)


def rows_with(name: str, api: str) -> Sequence[tuple[str, Form]]:
    """Return the rows that have the function *name*, a canonical path, of *api*, each with its form. Several where its arguments decide."""
    return _by_name(api).get(name, ())


@cache
def _by_name(api: str) -> Mapping[str, Sequence[tuple[str, Form]]]:
    found: dict[str, list[tuple[str, Form]]] = {}
    for row in TABLE:
        for form in forms_of(row, api):
            found.setdefault(form.name, []).append((row, form))
    return found


def _apis_of(text: str) -> Iterator[str]:
    said, colon, _ = text.partition(": ")
    if colon:
        yield said
    else:
        framework = text.partition(".")[0]
        yield from (api.name for api in APIS.values() if api.framework == framework)
