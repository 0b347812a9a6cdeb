"""The ``__import__`` that gives those who call it views of the frameworks."""

from __future__ import annotations

import builtins
import functools
import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from shim.substitution.mirrors import FRAMEWORKS
from shim.substitution.views import ModuleView, Through, view_of

# Modules whose functions return modules, and ours that have the same functions, which return views.
_IMPORTERS = {"importlib": "shim.substitution.importing", "pytest": "shim.substitution.skipping"}
SHOWN = frozenset({*FRAMEWORKS, *_IMPORTERS})

_import = builtins.__import__


def import_view(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
    *,
    through: Through | None = None,
) -> ModuleType:
    """Import as ``builtins.__import__`` does, and return the view of a framework's module, of importlib or of pytest.

    With *through*, frontends are seen through it, but by what the functions of the latter return.
    """
    module = _import(name, globals, locals, fromlist or (), level)
    if level:
        return module
    if module.__name__ in _IMPORTERS:
        return _importer(module)
    return view_of(module, through) if name.partition(".")[0] in FRAMEWORKS else module


@functools.cache
def _importer(module: ModuleType) -> ModuleView:
    return ModuleView(module, importlib.import_module(_IMPORTERS[module.__name__]))


def scoped_builtins(through: Through | None = None) -> dict[str, Any]:
    """Return the builtins for the globals of a module whose imports get views, with *through* where there is one.

    Python takes a module's builtins from its own ``__builtins__``, so nothing outside the module is changed.
    """
    importer = import_view if through is None else functools.partial(import_view, through=through)
    return {**vars(builtins), "__import__": importer}
