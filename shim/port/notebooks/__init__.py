"""Port notebooks: the code of all cells as one module, and their launch lines. The JSON keeps its layout byte for byte elsewhere."""

from __future__ import annotations

from shim.port.notebooks.notebook import NotANotebook
from shim.port.notebooks.porting import port_notebook

__all__ = ["NotANotebook", "port_notebook"]
