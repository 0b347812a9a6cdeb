"""What stands in for names of ``importlib`` in a program whose imports get views."""

from __future__ import annotations

import importlib
from types import ModuleType

from shim.substitution.views import view_of

__all__ = ["import_module"]


def import_module(name: str, package: str | None = None) -> ModuleType:
    """Import as ``importlib.import_module`` does, and return the view of a framework's module."""
    return view_of(importlib.import_module(name, package))
