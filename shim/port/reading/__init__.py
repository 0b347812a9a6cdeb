"""A source file, its names resolved to the APIs that they stand for."""

from __future__ import annotations

from shim.port.reading.flows import Flows
from shim.port.reading.groups import GROUP_CLASSES, WORLDS, Groups
from shim.port.reading.kinds import FOUND, Kinds
from shim.port.reading.source_file import SourceFile, Span

__all__ = ["FOUND", "GROUP_CLASSES", "WORLDS", "Flows", "Groups", "Kinds", "SourceFile", "Span"]
