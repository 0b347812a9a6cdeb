"""Primitives that are no primitives of MindSpore's: all of them where it is not loaded, and those that its kernels carry out."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any


class PlainPrimitive:
    """The attributes of a MindSpore primitive, for where there is no MindSpore."""

    name: str
    attrs: dict[str, Any]

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Start with no attributes, as an object made with *arguments*."""
        self.name = type(self).__name__
        self.attrs = {}
        self.init_attrs = dict(arguments)

    def add_prim_attr(self, name: str, value: Any) -> Any:
        """Set the attribute called *name*, and return the primitive."""
        setattr(self, name, value)
        self.attrs[name] = value
        return self

    def get_attr_dict(self) -> dict[str, Any]:
        """Return what ``add_prim_attr`` has set."""
        return self.attrs


def plain(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """Return an object of *kind* made with *arguments* that is no primitive of MindSpore's."""
    return joined(kind, PlainPrimitive)(**arguments)


@functools.cache
def joined(kind: Any, base: Any) -> Any:
    """Return the class that is both *kind* and *base*, always the same."""
    return type(kind.__name__, (kind, base), {"__doc__": kind.__doc__, "__module__": kind.__module__, "kind": kind})
