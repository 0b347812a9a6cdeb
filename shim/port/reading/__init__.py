"""A source file, its names resolved to the APIs that they stand for."""

from __future__ import annotations

from shim.port.reading.groups import WORLDS, Groups
from shim.port.reading.source_file import SourceFile, Span

__all__ = ["WORLDS", "Groups", "SourceFile", "Span"]
