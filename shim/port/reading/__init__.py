"""A source file, its names resolved to the APIs that they stand for."""

from __future__ import annotations

from shim.port.reading.groups import GROUP_CLASSES, WORLDS, Groups
from shim.port.reading.source_file import SourceFile, Span, first_name

__all__ = ["GROUP_CLASSES", "WORLDS", "Groups", "SourceFile", "Span", "first_name"]
