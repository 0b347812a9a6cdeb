"""Which functions of a file have collectives in them, and which use the framework's tensors without."""

from __future__ import annotations

import libcst as cst

from shim.port.correspondences import rows_with
from shim.port.correspondences.functions import COLLECTIVES, OBJECTS, POINT_TO_POINT
from shim.port.correspondences.names import AUTOGRAD_CLASSES, tensor_name_for
from shim.port.correspondences.returning import returned
from shim.port.reading import SourceFile

_COLLECTIVES = frozenset((*COLLECTIVES, *OBJECTS, *POINT_TO_POINT))


class CollectiveCallers(cst.CSTVisitor):
    """``functions`` are the outermost functions that call a collective, ``classes`` those of autograd whose methods do, by themselves or by the file's functions.

    ``in_module`` tells whether a statement outside of all functions does.
    """

    def __init__(self, file: SourceFile, api: str) -> None:
        self._file = file
        self._api = api
        self._outer: list[cst.FunctionDef | cst.ClassDef] = []
        self._called: dict[cst.CSTNode, set[str]] = {}
        self._autograd: dict[cst.ClassDef, set[str]] = {}
        self.functions: set[cst.CSTNode] = set()
        self.classes: set[cst.CSTNode] = set()
        self.in_module = False
        file.module.visit(self)
        self._follow_calls()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._outer.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._outer.pop()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._outer.append(node)
        if is_autograd(self._file, self._api, node):
            self._autograd[node] = set()

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._outer.pop()

    def visit_Name(self, node: cst.Name) -> None:
        self._visit_name(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._visit_name(node)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Name) and self._file.imported(node.func) is None:
            self._called.setdefault(outermost(self._outer) or self._file.module, set()).add(node.func.value)
            for each in self._outer:
                if isinstance(each, cst.ClassDef) and each in self._autograd:
                    self._autograd[each].add(node.func.value)

    def _visit_name(self, node: cst.Name | cst.Attribute) -> None:
        name = self._file.imported(node)
        if name is None or not (
            any(row in _COLLECTIVES for row, _ in rows_with(name, self._api)) or returned(name, self._api)
        ):
            return
        function = outermost(self._outer)
        if function is not None:
            self.functions.add(function)
        elif not self._outer:
            self.in_module = True
        self.classes |= {each for each in self._outer if each in self._autograd}

    def _follow_calls(self) -> None:
        """Add the classes of autograd that call a function of the file which calls a collective, and their methods."""
        names = {each.name.value for each in self.functions if isinstance(each, cst.FunctionDef)}
        grown = True
        while grown:
            more = {
                each.name.value
                for each, called in self._called.items()
                if isinstance(each, cst.FunctionDef) and called & names
            }
            grown, names = not more <= names, names | more
        self.classes |= {each for each, called in self._autograd.items() if called & names}
        for each in self.classes:
            assert isinstance(each, cst.ClassDef)
            self.functions |= {part for part in each.body.body if isinstance(part, cst.FunctionDef)}


def outermost(outer: list[cst.FunctionDef | cst.ClassDef]) -> cst.FunctionDef | None:
    """Return the first function of those that a place is in."""
    return next((each for each in outer if isinstance(each, cst.FunctionDef)), None)


def is_autograd(file: SourceFile, api: str, node: cst.ClassDef) -> bool:
    """Tell whether the class *node* has the framework's class of functions with gradients as a base."""
    names = (file.imported(base.value) for base in node.bases)
    return any(name is not None and tensor_name_for(name, api, api) in AUTOGRAD_CLASSES for name in names)
