"""The module of glue: what a framework itself lacks and a port onto it needs, written beside the ported files.

A frontend lacks none of it, so only ports with ``onto="native"`` have such a module.
"""

from __future__ import annotations

from shim.port.glue.functions import GLUE_MODULE, glue_form
from shim.port.glue.module import GLUE_FILE, with_glue

__all__ = ["GLUE_FILE", "GLUE_MODULE", "glue_form", "with_glue"]
