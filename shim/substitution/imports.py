"""The ``__import__`` that gives those who call it views of the frameworks."""

from __future__ import annotations

import builtins
import functools
import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from shim.substitution import importing
from shim.substitution.mirrors import FRAMEWORKS
from shim.substitution.views import ModuleView, Through, view_of

__all__ = ["import_view", "scoped_builtins"]

_import = builtins.__import__
_importlib = ModuleView(importlib, importing)


def import_view(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
    *,
    through: Through | None = None,
) -> ModuleType:
    """Import as ``builtins.__import__`` does, and return the view of a framework's module, or of importlib.

    With *through*, frontends are seen through it, but by what importlib's functions return.
    """
    module = _import(name, globals, locals, fromlist or (), level)
    if module is importlib:
        return _importlib
    if level or name.partition(".")[0] not in FRAMEWORKS:
        return module
    return view_of(module, through)


def scoped_builtins(through: Through | None = None) -> dict[str, Any]:
    """Return the builtins for the globals of a module whose imports get views, with *through* where there is one.

    Python takes a module's builtins from its own ``__builtins__``, so nothing outside the module is changed.
    """
    importer = import_view if through is None else functools.partial(import_view, through=through)
    return {**vars(builtins), "__import__": importer}
