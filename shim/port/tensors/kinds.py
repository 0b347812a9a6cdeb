"""Which expressions of a file are certain to be tensors, lists of them, shapes or numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import libcst as cst
from libcst.metadata import Assignment, ClassScope, GlobalScope

from shim.port.correspondences import rows_with
from shim.port.reading import SourceFile
from shim.port.tensors.members import MEMBERS
from shim.port.tensors.names import name_of
from shim.port.tensors.places import is_autograd
from shim.port.tensors.table import method_row, result_of, row_of, templates_of

__all__ = ["Kinds"]

_OF_ROLE = {"tensor": "tensor", "input": "tensor", "output": "tensor", "inputs": "tensors", "outputs": "tensors"}
_ELEMENT = {"tensors": "tensor", "tensor": "tensor", "shape": "number"}
_ROUNDS = 10  # after which a kind that still changes is none
_NUMBERS = ("get_world_size", "get_rank", "get_group_size")
_KEEP = frozenset(("unsqueeze", "squeeze", "flatten", "float", "transpose", "permute", "t", "T", "grad", "abs"))


class Kinds(cst.CSTVisitor):
    """Knows the kinds of *file*'s variables: by what they are assigned, by their annotations, and by the collectives that they are passed to."""

    def __init__(self, file: SourceFile, api: str) -> None:
        self._file = file
        self._api = api
        self._passed: dict[Hashable, str] = {}
        self._bound: dict[cst.CSTNode, tuple[str, cst.CSTNode]] = {}
        self._known: dict[Hashable, str | None] = {}
        self._kept: dict[Hashable, Hashable] = {}  # variables that are kept in attributes
        self._takes_any = b"shim.frontends." in file.text  # a frontend's collectives take any framework's tensors
        file.module.visit(self)
        self._settle()

    def of(self, node: cst.CSTNode) -> str | None:
        """Return ``tensor``, ``tensors``, ``shape``, ``number``, ``list``, ``group``, or another kind of the table; None where the source does not show it."""
        if isinstance(node, cst.Name):
            return self._of_name(node)
        if isinstance(node, cst.Attribute):
            return self._of_attribute(node)
        if isinstance(node, cst.Call):
            return self._of_call(node)
        if isinstance(node, cst.Subscript):
            return self._of_subscript(node)
        if isinstance(node, (cst.List, cst.Tuple, cst.ListComp)):
            return "tensors" if self._holds_tensors(node) else "list"
        if isinstance(node, (cst.Integer, cst.Float)):
            return "number"
        if isinstance(node, (cst.UnaryOperation, cst.BinaryOperation, cst.IfExp)):
            return self._of_operation(node)
        return None

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Attribute) and isinstance(node.value, cst.Name):
                self._kept[self._key(node.value)] = self._key(target.target)
            self._bind(target.target, "value", node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target, "annotated", node.annotation)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target, "same", node.value)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target, "element", node.iter)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._bind(node.target, "element", node.iter)

    def visit_Param(self, node: cst.Param) -> None:
        if node.annotation is not None:
            self._bound[node.name] = self._bound[node] = "annotated", node.annotation

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Remember the gradients that a function of autograd gets."""
        if is_autograd(self._file, self._api, node):
            for part in node.body.body:
                if isinstance(part, cst.FunctionDef) and part.name.value == "backward":
                    for parameter in part.params.params[1:]:
                        self._passed[self._key(parameter.name)] = "tensor"

    def visit_Call(self, node: cst.Call) -> None:
        if not isinstance(node.func, (cst.Name, cst.Attribute)):
            return
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "save_for_backward":
            for argument in node.args:
                self._remember(argument.value, "tensor")
        name = self._file.imported(node.func)
        rows = rows_with(name, self._api) if name else ()
        for position, argument in enumerate(node.args):
            kinds = set()
            for _, form in rows:
                keyword = argument.keyword
                given = form.parameters[position : position + 1] if keyword is None else [form.named(keyword.value)]
                kinds |= {_kind_of_role(parameter.role) for parameter in given if parameter is not None}
            if len(kinds) == 1 and (kind := kinds.pop()) is not None and (kind == "group" or not self._takes_any):
                self._remember(argument.value, kind)

    def _remember(self, node: cst.CSTNode, kind: str) -> None:
        key = self._key(node)
        if key is not None:
            self._passed[key] = kind
        elif kind == "tensors" and isinstance(node, (cst.List, cst.Tuple)):
            for element in node.elements:
                self._remember(element.value, "tensor")

    def _bind(self, target: cst.CSTNode, how: str, value: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self._bound[target] = how, value
        elif isinstance(target, (cst.Tuple, cst.List)) and how == "value":
            values = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
            for position, element in enumerate(target.elements):
                if len(values) == len(target.elements):
                    self._bind(element.value, "value", values[position].value)
                else:
                    self._bind(element.value, "element", value)

    def _key(self, node: cst.CSTNode) -> Hashable:
        if (
            isinstance(node, cst.Attribute)
            and isinstance(node.value, cst.Name)
            and node.value.value in ("self", "cls", "ctx")
        ):
            outer = self._file.scope(node.value)
            while outer is not None and not isinstance(outer, (ClassScope, GlobalScope)):
                outer = outer.parent
            return outer, node.attr.value
        if not isinstance(node, cst.Name):
            return None
        scope = self._file.scope(node)
        return frozenset(scope[node.value]) if scope is not None and scope[node.value] else None

    def _of_name(self, node: cst.Name) -> str | None:
        key = self._key(node)
        if key in self._passed:
            return self._passed[key]
        if self._kept.get(key) in self._passed:
            return self._passed[self._kept[key]]
        return self._known.get(key)

    def _settle(self) -> None:
        """Find the kinds of all variables: first none is known to differ, and each round takes away what an assignment speaks against."""
        keys = {self._key(node) for node in self._bound if isinstance(node, cst.Name)} - {None}
        self._known = dict.fromkeys(keys, "same")
        changed, rounds = True, 0
        while changed:
            changed, rounds = False, rounds + 1
            for key in keys:
                assert isinstance(key, frozenset)
                found = {self._of_assignment(each.node) for each in key if isinstance(each, Assignment)} - {"same"}
                kind = "same" if not found else found.pop() if len(found) == 1 else None
                if rounds > _ROUNDS and kind != self._known[key]:
                    kind = None
                if self._known[key] not in (kind, None):
                    self._known[key], changed = kind, True
        self._known = {key: None if kind == "same" else kind for key, kind in self._known.items()}

    def _of_assignment(self, node: cst.CSTNode) -> str | None:
        how, value = self._bound.get(node, ("", node))
        if how == "value":
            return self.of(value)
        if how == "element":
            return _ELEMENT.get(self.of(value) or "")
        if how == "annotated" and isinstance(value, cst.Annotation):
            return self._of_annotation(value.annotation)
        return "same" if how == "same" else None

    def _of_annotation(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, (cst.Name, cst.Attribute)):
            name = self._file.imported(node)
            if name is not None and name_of(name, self._api, self._api) == f"{self._file.api.framework}.Tensor":
                return "tensor"
            return "number" if self._file.code(node) in ("int", "float") else None
        if isinstance(node, cst.Subscript) and self._file.code(node.value).rpartition(".")[2] in (
            "List",
            "Sequence",
            "list",
        ):
            index = node.slice[0].slice
            return "tensors" if isinstance(index, cst.Index) and self._of_annotation(index.value) == "tensor" else None
        return None

    def _of_attribute(self, node: cst.Attribute) -> str | None:
        if (key := self._key(node)) is not None and key in self._passed:
            return self._passed[key]
        if self.of(node.value) != "tensor":
            return None
        if node.attr.value in _KEEP:
            return "tensor"
        return self._of_member(f"{{tensor}}.{node.attr.value}")

    def _of_call(self, node: cst.Call) -> str | None:
        function = node.func
        if not isinstance(function, (cst.Name, cst.Attribute)):
            return None
        name = self._file.imported(function)
        if name is not None:
            found = row_of(name, self._api)
            if found is not None:
                return result_of(found[0])
            return "number" if name.rpartition(".")[2] in _NUMBERS else self._of_member(f"{name}({{tensor}})")
        if isinstance(function, cst.Name) and function.value in ("list", "tuple") and len(node.args) == 1:
            kind = self.of(node.args[0].value)
            return kind if kind in ("shape", "tensors") else "list"
        if isinstance(function, cst.Name):
            return {"len": "number", "int": "number", "range": "shape"}.get(function.value)
        if self.of(function.value) != "tensor":
            return None
        if function.attr.value in _KEEP:
            return "tensor"
        method = method_row(function.attr.value, self._api)
        if method is not None:
            return result_of(method[0])
        places = ", ".join("{}" for _ in node.args)
        return self._of_member(f"{{tensor}}.{function.attr.value}({places})")

    def _of_member(self, text: str) -> str | None:
        """Return the kind of the member that is written as *text*, whatever its arguments are called."""
        for row, (kind, *_) in MEMBERS.items():
            for template in templates_of(row, self._api):
                if _same_places(template, text):
                    return kind
        return None

    def _of_subscript(self, node: cst.Subscript) -> str | None:
        kind = self.of(node.value)
        if kind in ("tensors", "shape") and any(isinstance(each.slice, cst.Slice) for each in node.slice):
            return kind
        return _ELEMENT.get(kind or "")

    def _holds_tensors(self, node: cst.List | cst.Tuple | cst.ListComp) -> bool:
        if isinstance(node, cst.ListComp):
            return self.of(node.elt) == "tensor"
        return bool(node.elements) and all(self.of(element.value) == "tensor" for element in node.elements)

    def _of_operation(self, node: cst.UnaryOperation | cst.BinaryOperation | cst.IfExp) -> str | None:
        kinds = {self.of(each) for each in _operands(node)} - {"same"}
        if "tensor" in kinds and not isinstance(node, cst.IfExp):
            return "tensor"
        if (
            isinstance(node, cst.BinaryOperation)
            and kinds & {"list", "tensors"}
            and kinds <= {"number", "list", "tensors", None}
        ):
            return "tensors" if kinds <= {"tensors", "number"} else "list"
        return kinds.pop() if len(kinds) == 1 else None


def _operands(node: cst.UnaryOperation | cst.BinaryOperation | cst.IfExp) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.UnaryOperation):
        yield node.expression
    elif isinstance(node, cst.IfExp):
        yield from (node.body, node.orelse)
    else:
        yield from (node.left, node.right)


def _kind_of_role(role: str) -> str | None:
    return "group" if role == "group" else _OF_ROLE.get(role)


def _same_places(template: str, text: str) -> bool:
    parts, other = template.split("{"), text.split("{")
    return (
        len(parts) == len(other)
        and parts[0] == other[0]
        and all(one.partition("}")[2] == two.partition("}")[2] for one, two in zip(parts[1:], other[1:], strict=True))
    )
