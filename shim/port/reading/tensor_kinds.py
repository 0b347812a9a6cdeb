"""Which expressions of a file are certain to be tensors, lists of them, shapes or numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import libcst as cst

from shim.port.correspondences.members import TENSOR_MEMBERS, tensor_templates
from shim.port.correspondences.names import dtype_of, tensor_name_for
from shim.port.correspondences.table import Form, kind_of, result_of, tensor_rows
from shim.port.reading.evidence import Evidence
from shim.port.reading.expressions import literal_of, passed
from shim.port.reading.source_file import SourceFile

_ELEMENT = {"array": "array", "tensors": "tensor", "tensor": "tensor", "pair": "tensor", "shape": "number"}
PAIRED = {"values": 0, "indices": 1}  # torch's names of what a pair has
_LITERALS: dict[type[cst.CSTNode], str] = {
    cst.Integer: "number",
    cst.Float: "number",
    cst.SimpleString: "text",
    cst.ConcatenatedString: "text",
    cst.FormattedString: "text",
    cst.Dict: "mapping",
    cst.DictComp: "mapping",
    cst.Set: "list",
    cst.SetComp: "list",
}
_BUILT_IN = {
    "bool": "flag",
    "dict": "mapping",
    "float": "number",
    "int": "number",
    "len": "number",
    "range": "shape",
    "str": "text",
}
_ANNOTATED = {"bool": "flag", "float": "number", "int": "number", "str": "text"}
_ROUNDS = 10  # after which a kind that still changes is none
_NUMBERS = ("get_world_size", "get_rank", "get_group_size")
_UNFIT = (("axis", "tensor"), ("other", "number"))


class TensorKinds:
    """Knows the kinds of *file*'s variables: by what they are assigned, by their annotations, and by the collectives that they are passed to.

    A variable is of a kind only if nothing in the file speaks for another one. ``evidence`` is what the file shows.
    """

    def __init__(self, file: SourceFile, api: str) -> None:
        self._file = file
        self._api = api
        self.evidence = Evidence(file, api)
        self._known: dict[Hashable, str | None] = {}
        self._settle()

    def of(self, node: cst.CSTNode) -> str | None:
        """Return ``tensor``, ``tensors``, ``shape``, ``number``, ``list``, ``group``, or another kind of the table; None where the source does not show it."""
        if isinstance(node, cst.Name):
            if node.value in ("self", "cls"):
                return "object"
            kind = "flag" if node.value in ("True", "False") else self._of_variable(node)
            return self._of_module(node) if kind is None else kind
        if isinstance(node, cst.Attribute):
            return self._of_attribute(node)
        if isinstance(node, cst.Call):
            return self._of_call(node)
        if isinstance(node, cst.Subscript):
            return self._of_subscript(node)
        if isinstance(node, (cst.List, cst.Tuple, cst.ListComp)):
            return self._of_elements(node)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            return "flag"
        if isinstance(node, (cst.UnaryOperation, cst.BinaryOperation, cst.IfExp)):
            return self._of_operation(node)
        if isinstance(node, cst.Comparison):
            return self._of_comparison(node)
        return _LITERALS.get(type(node))

    def _of_module(self, node: cst.Name) -> str | None:
        """Return ``array`` for NumPy, and what comes of it, ``dtype`` for the framework's, ``module`` for what else is imported."""
        names = self._file.imports_meant(node)
        if names and all(map(self._is_dtype, names)):
            return "dtype"
        return ("array" if all(f"{name}.".startswith("numpy.") for name in names) else "module") if names else None

    def _is_dtype(self, name: str) -> bool:
        of_paddle = tensor_name_for(name, self._api, "paddle_3") or ""
        return dtype_of(of_paddle.rpartition(".")[2], self._api) is not None

    def _of_variable(self, node: cst.CSTNode) -> str | None:
        return self._known.get(self.evidence.variable(node))

    def _settle(self) -> None:
        """Find the kinds of all variables: first none is known to differ, and each round takes away what an assignment speaks against."""
        passed = self.evidence.passed
        self._known = {
            each: "same" if each not in passed else passed[each].copy().pop() if len(passed[each]) == 1 else None
            for each in self.evidence.variables
        }
        changed, rounds = True, 0
        while changed:
            changed, rounds = False, rounds + 1
            for variable, known in list(self._known.items()):
                kind = self._agreed(variable)
                if rounds > _ROUNDS and kind != known:
                    kind = None
                if known not in (kind, None):
                    self._known[variable], changed = kind, True
        self._known = {each: None if kind == "same" else kind for each, kind in self._known.items()}

    def _agreed(self, variable: Hashable) -> str | None:
        """Return the kind that all assignments of *variable* agree on. What is passed to a collective is what that takes, unless one disagrees."""
        assignments = self.evidence.assignments(variable)
        found = {self._of_assignment(how, node) for how, node in assignments} - {"same"}
        if variable not in self.evidence.passed:
            return "same" if not found else found.pop() if len(found) == 1 else None
        found |= {self.of(node) for how, node in assignments if how == "default"}
        known = self._known[variable]
        allowed = {known, None, "list"} if known == "tensors" else {known, None}
        return known if known == "group" or found <= allowed else None

    def _of_assignment(self, how: str, node: cst.CSTNode) -> str | None:
        if how == "value":
            return self.of(node)
        if how == "element":
            return _element(self.of(node))
        if how == "annotated" and isinstance(node, cst.Annotation):
            return self._of_annotation(node.annotation)
        if how == "count":
            return "number"
        if how == "added":
            return "tensor" if self.of(node) == "tensor" else "same"
        return None

    def _of_annotation(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, (cst.Name, cst.Attribute)):
            name = self._file.imported(node)
            if name is not None and tensor_name_for(name, self._api, self._api) == f"{self._file.api.framework}.Tensor":
                return "tensor"
            return _ANNOTATED.get(self._file.code(node))
        if isinstance(node, cst.Subscript) and self._file.code(node.value).rpartition(".")[2] in (
            "List",
            "Sequence",
            "list",
        ):
            index = node.slice[0].slice
            return "tensors" if isinstance(index, cst.Index) and self._of_annotation(index.value) == "tensor" else None
        return None

    def _of_attribute(self, node: cst.Attribute) -> str | None:
        if self.evidence.shows(variable := self.evidence.variable(node)):
            return self._known.get(variable)
        kind = self.of(node.value)
        if kind == "pair" and node.attr.value in PAIRED:
            return "tensor"
        if kind == "module" and self._is_dtype(self._file.imported(node) or ""):
            return "dtype"
        if kind != "tensor":
            return kind if kind in ("same", "array") else None
        return self._of_member(f"{{tensor}}.{node.attr.value}")

    def _of_call(self, node: cst.Call) -> str | None:
        function = node.func
        if not isinstance(function, (cst.Name, cst.Attribute)):
            return None
        name = self._file.imported(function)
        if name is not None:
            if rows := self.rows_of(node):
                return self._of_rows(rows)
            return "number" if name.rpartition(".")[2] in _NUMBERS else self._of_member(_member_text(name, node))
        if isinstance(function, cst.Name) and function.value in ("list", "tuple") and len(node.args) == 1:
            kind = self.of(node.args[0].value)
            return kind if kind in ("same", "shape", "tensors") else "list"
        if isinstance(function, cst.Name):
            kinds = {self.of(value) for value in self.evidence.returned(node)} or {_BUILT_IN.get(function.value)}
            return kinds.pop() if len(kinds) == 1 else None
        if (kind := self.of(function.value)) != "tensor":
            return kind if kind in ("same", "array") else None
        if rows := self.rows_of(node):
            return self._of_rows(rows)
        return self._of_member(_member_text(f".{function.attr.value}", node))

    def rows_of(self, node: cst.Call) -> Sequence[tuple[str, Form]]:
        """Return the rows of tensors' functions and methods that the call may be of, each with its form: those that its arguments fit, or else the first, so that it is reported."""
        function = node.func
        name = self._file.imported(function)
        if name is None and isinstance(function, cst.Attribute):
            name = f".{function.attr.value}"
        rows = tensor_rows(name, self._api) if name is not None else ()
        fitting: dict[tuple[str, ...], tuple[str, Form]] = {}
        for row, form in rows:
            if self.fits(node, form):  # of rows that agree on what each argument is for, the first one counts
                fitting.setdefault(tuple(parameter.role for _, parameter in passed(node, form)), (row, form))
        if fitting or name is None or self._of_member(_member_text(name, node)) is not None:
            return [*fitting.values()]
        return rows[:1]

    def _of_rows(self, rows: Sequence[tuple[str, Form]]) -> str | None:
        kinds = {result_of(row) for row, _ in rows}
        return kinds.pop() if len(kinds) == 1 else None

    def fits(self, node: cst.Call, form: Form) -> bool:
        """Tell whether *form* takes the arguments, and gets all that it needs: an axis is no tensor, and the other tensor no number."""
        if any(argument.star for argument in node.args):
            return True
        taken = set()
        for position, argument in enumerate(node.args):
            parameter = form.taking(position, None if argument.keyword is None else argument.keyword.value)
            kind = self.of(argument.value)
            if parameter is None or (parameter.role, kind) in _UNFIT:
                return False
            if parameter.fixed and literal_of(self._file.code(argument.value)) != parameter.fixed:
                return False
            taken.add(parameter.name)
        return all(
            each.default is not None or each.fixed in ("True", "False") or each.name in taken
            for each in form.parameters
        )

    def _of_member(self, text: str) -> str | None:
        """Return the kind of the member that is written as *text*, whatever its arguments are called."""
        rows = (row for row, template in tensor_templates(self._api) if _same_places(template, text))
        row = next(rows, None)
        return None if row is None else kind_of(TENSOR_MEMBERS[row])

    def _of_subscript(self, node: cst.Subscript) -> str | None:
        if self.evidence.shows(variable := self.evidence.variable(node)):
            return self._known.get(variable)
        kind = self.of(node.value)
        if kind in ("tensors", "shape") and any(isinstance(each.slice, cst.Slice) for each in node.slice):
            return kind
        return _element(kind)

    def _of_elements(self, node: cst.List | cst.Tuple | cst.ListComp) -> str:
        elements = [node.elt] if isinstance(node, cst.ListComp) else [each.value for each in node.elements]
        kinds = {self.of(element) for element in elements}
        if kinds == {"same"}:
            return "same"
        return "tensors" if kinds and kinds <= {"same", "tensor"} else "list"

    def _of_operation(self, node: cst.UnaryOperation | cst.BinaryOperation | cst.IfExp) -> str | None:
        if isinstance(node, cst.BinaryOperation) and self.of(node.left) == "text":
            return "text"
        kinds = {self.of(each) for each in _operands(node)}
        if "tensor" in kinds and not isinstance(node, cst.IfExp):
            return "tensor"
        if kinds in ({"same"}, {"same", "number"}):
            return "same"
        kinds -= {"same"}
        if (
            isinstance(node, cst.BinaryOperation)
            and kinds & {"list", "tensors"}
            and kinds <= {"number", "list", "tensors", None}
        ):
            return "tensors" if kinds <= {"tensors", "number"} else "list"
        return kinds.pop() if len(kinds) == 1 else None

    def _of_comparison(self, node: cst.Comparison) -> str | None:
        kinds = {self.of(node.left)}
        for each in node.comparisons:
            if not isinstance(each.operator, _OF_TENSORS):
                return "flag"
            kinds.add(self.of(each.comparator))
        return "tensor" if "tensor" in kinds else "same" if "same" in kinds else None if None in kinds else "flag"


_OF_TENSORS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)


def _element(kind: str | None) -> str | None:
    """Return the kind of the elements of what is of a *kind*; ``same`` is what speaks against no kind so far."""
    return kind if kind == "same" else _ELEMENT.get(kind or "")


def _operands(node: cst.UnaryOperation | cst.BinaryOperation | cst.IfExp) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.UnaryOperation):
        yield node.expression
    elif isinstance(node, cst.IfExp):
        yield from (node.body, node.orelse)
    else:
        yield from (node.left, node.right)


def _member_text(name: str, node: cst.Call) -> str:
    """Return how a template would write *node*, a call of the function *name* or, where that begins with a dot, of the method."""
    places = ", ".join("{}" for _ in node.args)
    return f"{{tensor}}{name}({places})" if name.startswith(".") else f"{name}({places})"


def _same_places(template: str, text: str) -> bool:
    parts, other = template.split("{"), text.split("{")
    return (
        len(parts) == len(other)
        and parts[0] == other[0]
        and all(one.partition("}")[2] == two.partition("}")[2] for one, two in zip(parts[1:], other[1:], strict=True))
    )
