"""What stands in for ``builtins.__import__``: it gives views of the frameworks to some, and imports for all others as ever.

The name of this file is for Python: where a warning of a module that is being imported is to point at who imports it, Python leaves out the
frames of files whose names have "importlib" and "_bootstrap" in them.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from shim.substitution.imports import SHOWN, import_view

# Imports for import statements within a function that torch.compile compiles, and puts the module itself into the graph, whatever it gets. Where it
# gets an error, the graph ends before the statement, which is then carried out by Python.
_COMPILER = "torch._dynamo.symbolic_convert"

__tracebackhide__ = True  # by pytest, which shows the importing line above and the error below


class ImportHook:
    """Gives views to whoever imports with globals of which *gets_views* says so, which also gets the frame that imports.

    It is asked for imports of a framework alone; all imports go through the function that was found.
    """

    def __init__(self, gets_views: Callable[[Mapping[str, Any], FrameType], bool]) -> None:
        self._gets_views = gets_views
        self._is_installed = False

    def install(self) -> None:
        """Stand in for the function that is there now, unless it already does, or that one calls it."""
        if not self._is_installed:
            self._found = builtins.__import__
            self._is_installed = True
            builtins.__import__ = self

    def remove(self) -> None:
        """Put back the function that was found, unless another one has come since, which goes on calling this one."""
        if builtins.__import__ is self:
            builtins.__import__ = self._found
            self._is_installed = False

    def __call__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        importer = sys._getframe().f_back if not level and name.partition(".")[0] in SHOWN else None
        if importer is not None:  # C code imports without a frame
            if globals is None:  # called by name, as __import__("torch")
                globals = importer.f_globals
            if self._gets_views(globals, importer):
                if importer.f_globals.get("__name__") == _COMPILER:
                    raise ImportError(f"a graph cannot hold a view of {name}")
                return import_view(name, globals, locals, fromlist, level)
        return self._found(name, globals, locals, fromlist, level)
