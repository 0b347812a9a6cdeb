"""Functions that stand in for the port of a module's text: what is tested here is what happens around it."""

from __future__ import annotations

import ast
import os
import re

from shim.port.plan import Entry, Plan, Ported

IMPORT = "import torch.distributed as dist"
PORTED = "import shim.frontends.torch.distributed as dist"


def port_imports(source: str, plan: Plan) -> Ported:
    """Port the import, and leave ``monitored_barrier``."""
    ast.parse(source)
    text, places = re.subn(rf"\b{re.escape(IMPORT)}", PORTED, source)
    entries = [
        Entry(
            source.count("\n", 0, found.start()) + 1,
            1,
            "left",
            "no-equivalent",
            "there is no monitored_barrier",
            "use barrier",
        )
        for found in re.finditer("monitored_barrier", source)
    ]
    return Ported(text, places, entries)


def port_with_accidents(source: str, plan: Plan) -> Ported:
    """Fail in the way that a comment of the source asks for."""
    if "# raises" in source:
        raise KeyError("a bug")
    if "# nests" in source:
        raise RecursionError
    if "# dies" in source:
        os._exit(7)
    if "# breaks" in source:
        return Ported("def (", 1, ())
    return port_imports(source, plan)
