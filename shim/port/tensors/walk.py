"""The walk over a file's statements that have to do with collectives, which gives each use of tensors to the rule for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from shim.port.correspondences.members import templates_of
from shim.port.correspondences.names import OBJECTS_IN_ANNOTATIONS, tensor_name_for
from shim.port.correspondences.table import rows_with, tensor_rows
from shim.port.plan import Entry
from shim.port.reading.evidence import CollectiveCallers, is_autograd, outermost
from shim.port.reading.source_file import below
from shim.port.reading.tensor_kinds import PAIRED
from shim.port.rules.port import Port
from shim.port.tensors.autograd import port_autograd
from shim.port.tensors.calls import port_tensor_call
from shim.port.tensors.members import match, port_assigned, port_member, report_not_certain, report_unknown, targets_of
from shim.port.tensors.numbers import port_format, port_texts
from shim.port.tensors.operators import operators_on_arguments, port_in_place, report_in_place
from shim.port.tensors.shapes import port_joined_shapes, report_changed_shape
from shim.port.tensors.views import check_views, report_copy, report_shared_memory, report_unreached, written_parts
from shim.port.tensors.wholes import Wholes


def port_statements(port: Port) -> None:
    """Port the tensors' names in the functions, and in the module's own statements, that call a collective; or in the whole file, but for models."""
    edits, entries, places, done = port.edits.mark(), len(port.entries), port.places, {*port.done}
    walk = _Walk(port)
    port.visit(walk)
    if unported := dict(walk.unported_names):  # once more, without what they meet
        wholes = Wholes(port, walk.callers)
        left = [entry for entry in port.entries[entries:] if entry.kind == "left"]
        port.edits.undo(edits)
        del port.entries[entries:]
        port.places, port.done = places, done
        vars(port).pop("framework", None)
        walk = _Walk(port, wholes.with_any(unported.values()))
        port.visit(walk)
        known = {*port.entries}
        told = {entry: replace(entry, advice=entry.advice + wholes.told(node)) for entry, node in unported.items()}
        port.entries += [told.get(entry, entry) for entry in left if entry not in known]
    walk.report_changed_arguments()
    walk.unported.report(port)
    port.framework.write()


class _Walk(cst.CSTVisitor):
    """``unported_names`` are those of the source's framework that stay, each with its entry. Nothing in the parts *left* is ported."""

    def __init__(self, port: Port, left: Collection[cst.CSTNode] = ()) -> None:
        self.port = port
        self.callers = CollectiveCallers(port.file, port.plan.source)
        if port.plan.scope == "files":
            nodes = port.file.nodes.of(cst.ClassDef)
            self.callers.classes |= {node for node, _ in nodes if is_autograd(port.file, port.plan.source, node)}
        self.unported_names: list[tuple[Entry, cst.CSTNode]] = []
        self._left = left
        for each in left:
            if isinstance(each, cst.ClassDef):
                self._leave_class(each)
        self.unported = UnportedFunctions()
        self._outer: list[cst.FunctionDef | cst.ClassDef] = []
        self._parts = written_parts(port, port.tensors)
        self._calls: list[cst.Call] = []
        self._operators_outside: list[cst.AugAssign] = []

    def report_changed_arguments(self) -> None:
        """Report the operators in place by which other functions of the file change tensors of the ported ones."""
        if self.port.to_or_from("torch"):
            for node in operators_on_arguments(self.port.file, self.port.tensors, self._calls, self._operators_outside):
                report_in_place(self.port, node)

    @property
    def _is_inside(self) -> bool:
        function = outermost(self._outer)
        if self.port.plan.scope == "files":
            return not any(self._is_model(each) for each in self._outer)
        if function is not None:
            return function in self.callers.functions or any(each in self.callers.functions for each in self._outer)
        return not self._outer and self.callers.in_module

    def _is_model(self, node: cst.FunctionDef | cst.ClassDef) -> bool:
        """Tell whether *node* is a class with a base of the framework, which is for a converter of models; those of autograd are ported."""
        if not isinstance(node, cst.ClassDef) or node in self.callers.classes:
            return False
        names = (self.port.file.imported(base.value) for base in node.bases)
        return any(name is not None and not self._is_collective(name) for name in names)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._outer.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._outer.pop()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._outer.append(node)
        if node in self.callers.classes:
            self._port_class(node)

    def _port_class(self, node: cst.ClassDef) -> None:
        """Port a class of autograd, with its base; if that cannot be, leave it as it is, with its methods."""
        if not self.port.attempt(node.name, lambda: port_autograd(self.port, node)):
            self._leave_class(node)

    def _leave_class(self, node: cst.ClassDef) -> None:
        self.callers.functions -= set(node.body.body)
        self.callers.classes.discard(node)

    def on_visit(self, node: cst.CSTNode) -> bool:
        return (node not in self._left or isinstance(node, cst.ClassDef)) and super().on_visit(node)

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._outer.pop()

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        return node not in self.port.done

    def visit_Assign(self, node: cst.Assign) -> None:
        for each in node.targets:
            if self._is_inside and isinstance(each.target, cst.Subscript):
                report_changed_shape(self.port, each.target)
        for target in (found for each in node.targets for found in targets_of(each.target)):
            is_new = target not in self.port.done
            self.port.done.add(target)
            if self._is_inside and is_new:
                self.port.attempt(target, lambda target=target: port_assigned(self.port, node, target))  # type: ignore[misc]

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self.port.done.add(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self._is_inside:
            value = None if isinstance(node.target, cst.Subscript) else node.value
            report_changed_shape(self.port, node.target, value)
            port_in_place(self.port, node)
        else:
            self._operators_outside.append(node)

    def visit_FormattedStringExpression(self, node: cst.FormattedStringExpression) -> None:
        if self._is_inside:
            port_format(self.port, node)

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if self._is_inside and isinstance(node.operator, cst.Add):
            port_joined_shapes(self.port, node.left, node.right)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        compared = [each for each in node.comparisons if isinstance(each.operator, (cst.Equal, cst.NotEqual))]
        if self._is_inside and len(node.comparisons) == len(compared) == 1:
            port_joined_shapes(self.port, node.left, node.comparisons[0].comparator)

    def visit_Call(self, node: cst.Call) -> bool:
        """Port the call. What is in one that is left stays, too."""
        before = len(self.port.entries)
        self._visit_call(node)
        return all(each.kind != "left" or each.rule == "may-be-tensor" for each in self.port.entries[before:])

    def _visit_call(self, node: cst.Call) -> None:
        if not self._is_inside:
            return
        self._calls.append(node)
        port_texts(self.port, node)
        name = self.port.file.imported(node.func) if isinstance(node.func, (cst.Name, cst.Attribute)) else None
        if name is not None and self._is_collective(name):
            return
        if node in self._parts and not self.port.attempt(node, lambda: check_views(self.port, node)):
            self.port.done.add(node.func)
            return
        if report_copy(self.port, node):
            self.port.done.add(node.func)
            return
        if name is not None and (rows := self.port.tensors.rows_of(node)):
            self.port.done.add(node.func)
            self._note(node, lambda: self.port.attempt(node, lambda: port_tensor_call(self.port, node, rows)))
        elif name is not None:
            self._note(node, lambda: self._member(node, certain=True))
        elif isinstance(node.func, cst.Attribute) and node.func not in self.port.done:
            self._visit_method(node, node.func)

    def _note(self, node: cst.CSTNode, change: Callable[[], object]) -> None:
        """Make the *change* of *node*, which has a name of the source's framework, and note where it stays."""
        before = len(self.port.entries)
        change()
        self.unported_names += [(entry, node) for entry in self.port.entries[before:] if entry.kind == "left"]

    def _visit_method(self, node: cst.Call, function: cst.Attribute) -> None:
        kind = self.port.tensors.of(function.value)
        rows = self.port.tensors.rows_of(node)
        if kind == "tensor" and rows:
            self.port.done.add(function)
            if rows[0][0].endswith("_") and report_unreached(self.port, node, function.value):
                return
            self.port.attempt(node, lambda: port_tensor_call(self.port, node, rows))
        elif not self._member(node, certain=kind == "tensor") and kind == "tensor":
            self.port.done.add(function)
            report_unknown(self.port, node, f"{function.attr.value} of a tensor, called so,")
        elif kind is None and rows and not _is_of_text(node) and self._differs(function.attr.value):
            self.port.done.add(function)
            report_not_certain(self.port, node, function)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if self._is_inside and node.attr.value in PAIRED and self.port.tensors.of(node.value) == "pair":
            self._port_pair(node)
        if self._is_inside and node not in self.port.done and self.port.file.imported(node) is None:
            of_gradient = node.attr.value == "grad" and self.port.tensors.of(node) == "tensor"
            certain = of_gradient or self.port.tensors.of(node.value) == "tensor"
            if not self._member(node, certain) and certain:
                report_unknown(self.port, node, f"{node.attr.value} of a tensor")
        return self._visit_name(node)

    def _port_pair(self, node: cst.Attribute) -> None:
        """Take the values or the indices of a pair by their place: it is a plain tuple outside of torch."""
        if self.port.plan.target != "torch" and node not in self.port.done and match(self.port, node) is None:
            start = self.port.file.span(node.value).end
            self.port.edits.replace(start, self.port.file.span(node).end, f"[{PAIRED[node.attr.value]}]")
            self.port.done.add(node)
            self.port.places += 1

    def visit_Name(self, node: cst.Name) -> bool:
        return self._visit_name(node)

    def _member(self, node: cst.Attribute | cst.Call, certain: bool) -> bool:
        """Port a member of a tensor. Returns whether *node* is one."""
        found = match(self.port, node)
        if found is None:
            return False
        row, parts = found
        tensor = parts[0]
        inner = (
            node.value
            if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Call) and len(parts) > 1
            else node
        )
        function = inner.func if isinstance(inner, cst.Call) else inner
        if row == "max_along":
            certain = self.port.tensors.of(tensor) == "tensor"
        self.port.done |= {function, inner}
        if certain:
            if row == "numpy":
                report_shared_memory(self.port, node, tensor)
            if row.endswith("_") and row != "copy_" and report_unreached(self.port, node, tensor):
                return True
            self.port.attempt(node, lambda: port_member(self.port, node, row, parts))
        elif self.port.tensors.of(tensor) is None and isinstance(function, cst.Attribute):
            if self._row_differs(row):
                report_not_certain(self.port, node, function)
            elif row == "numpy":
                report_shared_memory(self.port, node, tensor)
        return True

    def _row_differs(self, row: str) -> bool:
        """Tell whether code for the source's tensors would not do with the target's."""
        return (
            row not in ("copy_", "place", "values", "max", "to_dtype")
            and templates_of(row, self.port.plan.source)[:1] != templates_of(row, self.port.plan.target)[:1]
        )

    def _differs(self, name: str) -> bool:
        """Tell whether the method of the source's tensors is not as it is of the target's."""
        other = tensor_rows(f".{name}", self.port.plan.target)
        own = tensor_rows(f".{name}", self.port.plan.source)
        return [(row, form.parameters, form.is_variadic) for row, form in own] != [
            (row, form.parameters, form.is_variadic) for row, form in other
        ]

    def _visit_name(self, node: cst.Name | cst.Attribute) -> bool:
        """Port a name of the framework that is no call. Returns whether there is anything else in *node*."""
        name = self.port.file.imported(node)
        if name is None:
            return True
        if node in self.port.done or self._is_collective(name):
            return False
        if not self._is_inside and not (self._outer and self._outer[-1] in self.callers.classes):
            self.unported.add(self._outer, node, name, self.callers)
            return False
        target = tensor_name_for(name, self.port.plan.source, self.port.plan.target)
        if target is None and name in OBJECTS_IN_ANNOTATIONS and self._is_in_annotation(node):
            self.port.edits.replace(*self.port.file.span(node), "object")
            self.port.places += 1
        elif target is None:
            self._note(node, lambda: report_unknown(self.port, node, name))
        else:
            if target.rpartition(".")[2].startswith("_"):
                why = f"{target} is private in {self.port.target.framework}, which has no public name for it"
                self.port.changed(
                    node, "private-name", why, "Look whether it is there after each update of the framework."
                )
            self.port.attempt(node, lambda: self._write(node, target))
        return False

    def _is_in_annotation(self, node: cst.CSTNode) -> bool:
        return any(node in below(annotation) for annotation, _ in self.port.file.nodes.of(cst.Annotation))

    def _is_collective(self, name: str) -> bool:
        return self.port.source.is_collective(name) or bool(rows_with(name, self.port.plan.source))

    def _write(self, node: cst.CSTNode, target: str) -> None:
        self.port.edits.replace(*self.port.file.span(node), self.port.framework.spell(target))
        self.port.places += 1


def _is_of_text(node: cst.Call) -> bool:
    """Tell whether the call can be of a string: ``split`` with a string, or with nothing."""
    return not node.args or any(
        isinstance(argument.value, (cst.SimpleString, cst.FormattedString)) for argument in node.args
    )


_NAMED = 3  # of the names that each uses


@dataclass
class UnportedFunctions:
    """The functions that use the framework's tensors and call no collective: what converts models has to port these.

    ``uses`` has for the name of each its place, how it is called, and the names that it uses; for None those of the module itself. A class is one of them
    if none of its methods calls a collective.
    """

    uses: dict[cst.Name | None, tuple[cst.CSTNode, str, dict[str, None]]] = field(default_factory=dict)

    def add(
        self, outer: Sequence[cst.FunctionDef | cst.ClassDef], node: cst.CSTNode, name: str, callers: CollectiveCallers
    ) -> None:
        """Add the use of *name* by *node*, which is in the functions and classes *outer*."""
        owner, said = None, ""
        for each in outer:
            said = f"{said}.{each.name.value}".lstrip(".")
            owner = each.name
            if isinstance(each, cst.FunctionDef) or not any(part in callers.functions for part in each.body.body):
                break
        place = node if owner is None else owner
        self.uses.setdefault(owner, (place, said, {}))[2][name] = None

    def report(self, port: Port) -> None:
        """Report each with the first of its names."""
        reason = "is a model" if port.plan.scope == "files" else "calls no collective"
        for place, said, names in self.uses.values():
            shown = ", ".join(list(names)[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
            port.left(
                place,
                "for-model-converter",
                f"{said or 'code outside of functions'} uses {shown} and {reason}",
                "Port it by a converter of models, or by hand, before tensors pass between it and the ported functions.",
            )
