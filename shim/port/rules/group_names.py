"""Groups that are given by a name of the API or by a string, as MindSpore's are."""

from __future__ import annotations

import libcst as cst

from shim.port.plan import Left
from shim.port.reading import WORLDS
from shim.port.rules.literals import literal_of
from shim.port.rules.port import Port

_WORLD_STRINGS = frozenset(("'hccl_world_group'", "'mccl_world_group'", "'nccl_world_group'"))


def is_world(port: Port, value: cst.BaseExpression) -> bool:
    """Tell whether *value*, a group, is the source's name of the world."""
    return port.file.imported(value) in WORLDS or (
        _has_strings(port) and literal_of(port.file.code(value)) in _WORLD_STRINGS
    )


def check_group(port: Port, value: cst.BaseExpression) -> None:
    """Raise Left if *value*, a group, is a string that the program chose, and the target's groups are objects."""
    if not _has_strings(port):
        return
    values = port.file.values_of(value) if isinstance(value, cst.Name) else [value]
    if values and all(isinstance(each, (cst.SimpleString, cst.FormattedString)) for each in values):
        raise Left(
            "group-by-name",
            f"{port.file.code(value)} is the name of a group, and groups of {port.target.framework} are objects",
            "Pass the group that new_group returns.",
        )


def _has_strings(port: Port) -> bool:
    return port.source.framework == "mindspore" != port.target.framework
