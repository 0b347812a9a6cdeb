"""How each kind of use of an API is ported: a file for each."""

from __future__ import annotations

from shim.port.rules.imports import port_imports
from shim.port.rules.port import Port
from shim.port.rules.spelling import Spelling
from shim.port.rules.walk import Walk

__all__ = ["Port", "Spelling", "Walk", "port_imports"]
