"""Which variables and attributes of a file are certain to be groups."""

from __future__ import annotations

from collections.abc import Hashable

import libcst as cst
from libcst.metadata import ClassScope, GlobalScope

from shim.port.correspondences import rows_with
from shim.port.reading.source_file import SourceFile

__all__ = ["GROUP_CLASSES", "WORLDS", "Groups"]

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
_OR_NONE = frozenset(("None", "Optional", "Union", "typing.Optional", "typing.Union"))


class Groups(cst.CSTVisitor):
    """Knows the groups of *file*: variables and attributes of self that are assigned a group, annotated as one, or passed as one to a collective."""

    def __init__(self, file: SourceFile, api: str) -> None:
        self._file = file
        self._api = api
        self._known: set[Hashable] = set()
        file.module.visit(self)

    def __contains__(self, node: cst.CSTNode) -> bool:
        """Tell whether the expression *node* is certain to be a group."""
        return self._is_made(node) or self._key(node) in self._known

    def visit_Assign(self, node: cst.Assign) -> None:
        if self._is_made(node.value):
            for target in node.targets:
                self._add(target.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if self._is_annotated(node.annotation):
            self._add(node.target)

    def visit_Param(self, node: cst.Param) -> None:
        if node.annotation is not None and self._is_annotated(node.annotation):
            self._add(node.name)

    def visit_Call(self, node: cst.Call) -> None:
        if not isinstance(node.func, (cst.Name, cst.Attribute)):
            return
        name = self._file.imported(node.func)
        for _, form in rows_with(name, self._api) if name else ():
            for position, argument in enumerate(node.args):
                keyword = argument.keyword
                known = form.parameters[position : position + 1] if keyword is None else [form.named(keyword.value)]
                if any(parameter is not None and parameter.role == "group" for parameter in known):
                    self._add(argument.value)

    def _is_made(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call) and isinstance(node.func, (cst.Name, cst.Attribute)):
            return self._file.imported(node.func) in _MAKERS
        return isinstance(node, cst.Attribute) and self._file.imported(node) in WORLDS

    def _is_annotated(self, annotation: cst.Annotation) -> bool:
        """Tell whether an annotation is of a group, or of a group or None."""
        found: list[cst.Name | cst.Attribute] = []

        class Names(cst.CSTVisitor):
            def visit_Attribute(self, node: cst.Attribute) -> bool:
                found.append(node)
                return False

            def visit_Name(self, node: cst.Name) -> None:
                found.append(node)

        annotation.annotation.visit(Names())
        for code in self._file.quoted(annotation.annotation):
            code.visit(Names())
        meant = {self._file.imported(node) or self._file.code(node) for node in found}
        return bool(meant & GROUP_CLASSES) and meant <= {*GROUP_CLASSES, *_OR_NONE}

    def _add(self, node: cst.CSTNode) -> None:
        key = self._key(node)
        if key is not None:
            self._known.add(key)

    def _key(self, node: cst.CSTNode) -> Hashable:
        """Return what is the same for all uses of a variable, or of an attribute of self in a class; None for other expressions."""
        if (
            isinstance(node, cst.Attribute)
            and isinstance(node.value, cst.Name)
            and node.value.value in ("self", "cls", "ctx")
        ):
            scope = self._file.scope(node.value)
            while scope is not None and not isinstance(scope, (ClassScope, GlobalScope)):
                scope = scope.parent
            return scope, node.attr.value
        if not isinstance(node, cst.Name):
            return None
        scope = self._file.scope(node)
        return frozenset(scope[node.value]) if scope is not None and scope[node.value] else None
