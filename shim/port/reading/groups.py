"""Which expressions of a file are certain to be groups."""

from __future__ import annotations

from collections.abc import Hashable

import libcst as cst

from shim.port.correspondences import rows_with
from shim.port.reading.flows import Flows
from shim.port.reading.kinds import FOUND, Kinds
from shim.port.reading.passed import passed
from shim.port.reading.source_file import SourceFile

GROUP_CLASSES = frozenset(("torch.distributed.ProcessGroup", "paddle.distributed.collective.Group"))
_MAKERS = frozenset(
    (
        "paddle.distributed.collective._get_default_group",
        "paddle.distributed.get_group",
        "paddle.distributed.new_group",
        "torch.distributed._get_default_group",
        "torch.distributed.new_group",
        "torch.distributed.split_group",
    )
)
WORLDS = frozenset(
    (
        "mindspore.communication.GlobalComm.WORLD_COMM_GROUP",
        "mindspore.communication.HCCL_WORLD_COMM_GROUP",
        "mindspore.communication.MCCL_WORLD_COMM_GROUP",
        "mindspore.communication.NCCL_WORLD_COMM_GROUP",
        "torch.distributed.GroupMember.WORLD",
        "torch.distributed.group.WORLD",
    )
)


class Groups:
    """Knows the groups of *file*.

    An expression is one if it is made as one, or if its variable or attribute is: by what is assigned to it, its annotation, or by being passed as one
    to a collective. Assignments, parameters and results of the file's own functions, attributes, and elements of containers are followed.
    """

    def __init__(self, file: SourceFile, api: str, flows: Flows) -> None:
        self._file = file
        self._api = api
        self._known: set[Hashable] = set()
        self._flows = flows
        for assign, _ in file.nodes.of(cst.Assign):
            for target in assign.targets if self._is_made(assign.value) else ():
                self._add(target.target)
        for call, _ in file.nodes.of(cst.Call):
            self._add_passed(call)
        self._follow_backwards()
        self._kinds = Kinds(flows, self._is_made, self._is_class, self._known)

    def __contains__(self, node: cst.CSTNode) -> bool:
        """Tell whether the expression *node* is certain to be a group."""
        return isinstance(node, cst.BaseExpression) and self._kinds.of(node) is FOUND

    def _add_passed(self, node: cst.Call) -> None:
        """Note what is passed as a group to a function of the API."""
        if not isinstance(node.func, (cst.Name, cst.Attribute)):
            return
        name = self._file.imported(node.func)
        for _, form in rows_with(name, self._api) if name else ():
            for value, parameter in passed(node, form):
                if parameter.role == "group":
                    self._add(value)

    def _is_made(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
            return self._file.imported(node.func) in _MAKERS
        return isinstance(node, (cst.Name, cst.Attribute)) and self._file.imported(node) in WORLDS

    def _is_class(self, node: cst.CSTNode) -> bool:
        return isinstance(node, (cst.Name, cst.Attribute)) and self._file.imported(node) in GROUP_CLASSES

    def _add(self, node: cst.CSTNode) -> None:
        place = self._flows.definitions.place(node)
        if place is not None:
            self._known.add(place)

    def _follow_backwards(self) -> None:
        """Have what flows into a group be one, too: a parameter that is assigned to ``self.group``, an argument that a function passes to a collective."""
        waiting = list(self._known)
        while waiting:
            for value in self._flows.into.get(waiting.pop(), ()):
                for each in () if value.path or value.is_element else _choices(value.source):
                    place = self._flows.definitions.place(each)
                    if place is not None and place not in self._known:
                        self._known.add(place)
                        waiting.append(place)


def _choices(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the variables and attributes of which *node* is one."""
    if isinstance(node, cst.IfExp):
        return [*_choices(node.body), *_choices(node.orelse)]
    if isinstance(node, cst.BooleanOperation):
        return [*_choices(node.left), *_choices(node.right)]
    return [node] if isinstance(node, (cst.Name, cst.Attribute)) else []
