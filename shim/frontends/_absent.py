"""What a framework has and its frontend does not: asking for it, or importing it, says why it is absent and what to do instead."""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from shim.errors import UnsupportedError

ANY = "*"  # in a table: every name of the module that is not listed, be it the framework's or nobody's
_NEAR = 0.8  # how much a name must have of another to be taken for its misspelling; 1 is all


class Absent(NamedTuple):
    """Why a frontend lacks some names, and what its user can do."""

    what: str  # continues "MODULE has no NAME, which"; may name the {module} and the {frontend}, its package
    instead: str  # may do so, too

    def told_of(self, module: str, name: str) -> str:
        places = {"module": module, "frontend": frontend_of(module)}
        return f"{module} has no {name}, which {self.what.format(**places)}\n{self.instead.format(**places)}"


_Table = Mapping[str, Mapping[str, Absent]]  # from the path of a module below the frontend, and a name in it

_tables: dict[str, _Table] = {}
_of_other_releases: dict[str, Mapping[str, Absent]] = {}  # by module


class _AbsentNameError(UnsupportedError, AttributeError):
    """A module lacks a name that the framework's has."""


class _AbsentImportError(UnsupportedError, ImportError):
    """An import asks a module for a name that only the framework's has."""


class _AbsentModuleError(UnsupportedError, ModuleNotFoundError):
    """An import asks for a module that only the framework has."""


def by_name(groups: Mapping[Absent, Sequence[str]]) -> dict[str, Absent]:
    """Return the names of all *groups*, each with why it is absent."""
    return {name: absent for absent, names in groups.items() for name in names}


def explain_absent(frontend: str, table: _Table) -> None:
    """Explain from now on the names in *table*, and modules by these names, to whoever asks the package *frontend* for them."""
    _tables[frontend] = table


def explain_other_releases(module: str, names: Mapping[str, Absent]) -> None:
    """Explain from now on the *names* that *module*, a frontend's, has for other releases of its framework."""
    _of_other_releases[module] = names


def absent_in(module: str, name: str) -> Absent | None:
    """Return why *module*, a frontend's, lacks *name*; None if its framework's has no such name either, as far as is known."""
    if name.startswith("__"):
        return None
    if name in _of_other_releases.get(module, ()):
        return _of_other_releases[module][name]
    frontend = frontend_of(module)
    names = _tables.get(frontend, {}).get(module[len(frontend) + 1 :], {})
    listed = names.get(name)
    if listed is not None or ANY not in names:
        return listed
    others = [other for other in _names_in(sys.modules[module]) if other != name]
    meant = get_close_matches(name, others, 1, _NEAR)
    return names[ANY]._replace(instead=f"{names[ANY].instead}\nDid you mean {meant[0]}?") if meant else names[ANY]


def is_listed_as_absent(module: str, name: str) -> bool:
    """Tell whether the table of a frontend says of *name* itself why *module* lacks it."""
    frontend = frontend_of(module)
    importlib.import_module(frontend)
    return name in _tables.get(frontend, {}).get(module[len(frontend) + 1 :], {})


def _names_in(module: Any) -> list[str]:
    """Return the public names of *module*, and those of the modules in it."""
    modules = (found.name for found in iter_modules(getattr(module, "__path__", ())))
    return [name for name in (*getattr(module, "__all__", ()), *modules) if not name.startswith("_")]


def frontend_of(module: str) -> str:
    """Return the package of the frontend that *module* is, or belongs to."""
    return ".".join(module.split(".")[:3])


def refuse_name(module: str, name: str) -> NoReturn:
    """Raise AttributeError for *name*, for which the ``__getattr__`` of *module* was called, or ImportError if it is being imported from there."""
    absent = absent_in(module, name)
    if (
        absent is None or f"{module}.{name}" in sys.modules
    ):  # which `from ... import` then takes: a test's stand-in, say
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if not _is_importing():
        raise _AbsentNameError(absent.told_of(module, name))
    error = _AbsentImportError(absent.told_of(module, name))
    error.name, error.path = module, getattr(sys.modules[module], "__file__", None)
    raise error


def _is_importing() -> bool:
    """Tell whether a statement ``from ... import`` has called the module's ``__getattr__``."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_name != "__getattr__":
        frame = frame.f_back
    asking = frame.f_back
    return bool(asking.f_code.co_code[asking.f_lasti] == dis.opmap["IMPORT_FROM"])


class _AbsentModules:
    """The last of Python's finders, which is asked for modules that no other has found.

    It raises for an import alone: who asks for a spec, as ``importlib.util.find_spec`` does, wants to know whether there is such a module.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if path is None or target is not None or not _is_import(sys._getframe(1).f_back):
            return  # it has no package, is there already, or is only asked about
        module, _, last = name.rpartition(".")
        absent = absent_in(module, last) if module.startswith(f"{__package__}.") else None
        if absent is None:
            return
        error = _AbsentModuleError(absent.told_of(module, f"module {last}"))
        error.name = name
        raise error


def _is_import(asking: Any) -> bool:
    """Tell whether *asking*, the frame that has the finders asked, is of the import system itself."""
    return asking is not None and asking.f_globals.get("__name__") in ("importlib._bootstrap", "_frozen_importlib")


sys.meta_path.append(_AbsentModules())
