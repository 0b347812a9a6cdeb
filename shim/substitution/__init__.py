"""Programs written for the installed frameworks, run on the frontends without being changed.

``as_installed()`` does it for a block, ``run_script`` for a program (``shim run --as-installed``). An import of theirs gets
a *view* of the framework: its own module in all but the names that a frontend has. Only the imports of that block,
or of that program, get one; every other module, the framework's own among them, sees the framework as it is.
"""

from __future__ import annotations

from shim.substitution.block import as_installed
from shim.substitution.mirrors import frontends_of_installed
from shim.substitution.program import run_module, run_script

__all__ = ["as_installed", "frontends_of_installed", "run_module", "run_script"]
