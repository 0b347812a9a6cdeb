"""A source file, its names resolved to the APIs that they stand for."""

from __future__ import annotations

from shim.port.reading.expressions import passed, unpacked
from shim.port.reading.flows import Flows
from shim.port.reading.groups import FOUND, GROUP_CLASSES, WORLDS, Groups, Kinds
from shim.port.reading.source_file import SOMETHING_ELSE, SourceFile, Span, first_name, literal_name

__all__ = [
    "FOUND",
    "GROUP_CLASSES",
    "SOMETHING_ELSE",
    "WORLDS",
    "Flows",
    "Groups",
    "Kinds",
    "SourceFile",
    "Span",
    "first_name",
    "literal_name",
    "passed",
    "unpacked",
]
