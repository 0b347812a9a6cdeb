"""The walk over a file, which gives each use of the API to the rule for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from shim.port.correspondences.members import GROUP_MEMBERS
from shim.port.correspondences.names import name_for
from shim.port.correspondences.returning import primitive, returned
from shim.port.correspondences.table import Form, form_for, forms_of, recorded, rows_with
from shim.port.plan import Left
from shim.port.reading.groups import GROUP_CLASSES
from shim.port.reading.source_file import below, literal_name
from shim.port.rules.before_init import answer_before_init, report_early_questions, report_early_value
from shim.port.rules.calls import SPAWN, Functions, port_call, port_spawn
from shim.port.rules.groups import exchange, is_world_at_import, member_row, port_member, report_possible_group
from shim.port.rules.partials import not_alike
from shim.port.rules.port import Port
from shim.port.rules.primitives import Primitives
from shim.port.rules.remarks import report_source_tensors, report_star, report_unknown
from shim.port.rules.returned_tensors import port_returning
from shim.port.rules.spelling import Spelling, is_module
from shim.port.rules.values import BY_NAME, report_launcher_variable, report_values

WORK = "torch.distributed.Work"
# By what a question becomes: its row.
_ASKS = {"torch.distributed.get_rank()": "rank", "torch.distributed.get_world_size()": "size"}


class Walk(cst.CSTVisitor):
    """Visits a file's nodes from the outside to the inside. ``imports`` are the import statements, which are ported last."""

    def __init__(self, port: Port, spelling: Spelling) -> None:
        self.port = port
        self.spelling = spelling
        self.imports: list[cst.Import | cst.ImportFrom] = []
        self._groups = port.groups
        self._functions = Functions(port.file, port.plan)
        self._primitives = Primitives(port, self._spelled)
        self._targets: set[cst.CSTNode] = set()  # of assignments

    def visit_Module(self, node: cst.Module) -> None:
        self.port.before.update(zip(node.body[1:], node.body, strict=False))
        if node is self.port.file.module:  # and not code in quotes
            report_values(self.port)

    def leave_Module(self, original_node: cst.Module) -> None:
        if original_node is self.port.file.module:
            report_early_questions(self.port)
            report_source_tensors(self.port)
            self._primitives.write()

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self.port.before.update(zip(node.body[1:], node.body, strict=False))

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.port.statement = node

    def visit_Import(self, node: cst.Import) -> bool:
        self.imports.append(node)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        self.imports.append(node)
        return False

    def visit_Call(self, node: cst.Call) -> bool:
        function = node.func
        if node in self.port.done or self._port_expression(node) or self._port_object(node):
            return False
        report_launcher_variable(self.port, node)
        if self.port.file.imported(node) is not None:
            return self._visit_name(node)
        if isinstance(function, (cst.Name, cst.Attribute)) or self.port.file.imported(function) is not None:
            self._visit_call_of(node, function)
        return True

    def visit_Subscript(self, node: cst.Subscript) -> None:
        report_launcher_variable(self.port, node)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        report_launcher_variable(self.port, node)

    def visit_Param(self, node: cst.Param) -> None:
        if (default := node.default) is not None and is_world_at_import(self.port, node):
            self._write_word(default, "None")

    def visit_Annotation(self, node: cst.Annotation) -> None:
        quoted = self.port.file.quoted(node.annotation)
        if name_for(WORK, self.port.plan.source, self.port.plan.target) is None:
            parts = [each for code in (node, *quoted) for each in below(code)]
            attributes = [each.attr for each in parts if isinstance(each, cst.Attribute)]
            for each in parts:
                if not isinstance(each, (cst.Name, cst.Attribute)) or each in attributes:
                    continue
                if self.port.file.imported(each) == WORK:  # nobody asks anything of it
                    self._write_word(each, "object")
        for code in quoted:
            code.visit(self)

    def _port_expression(self, node: cst.Call | cst.Attribute) -> bool:
        """Port a call, or an attribute of one or of a variable that holds one, which the table has as a name. Returns whether it is one."""
        call: cst.BaseExpression = node if isinstance(node, cst.Call) else node.value
        if isinstance(call, cst.Name) and (values := self.port.file.values_of(call)) is not None and len(values) == 1:
            call = values[0]
        name = self.port.file.imported(call.func) if isinstance(call, cst.Call) else None
        if name is None or not isinstance(call, cst.Call):
            return False
        if rows_with(name, self.port.plan.source):  # a function, which stays one
            return False
        arguments = ", ".join(self.port.file.code(argument) for argument in call.args)
        text = f"{name}({arguments})" + (f".{node.attr.value}" if isinstance(node, cst.Attribute) else "")
        target = name_for(text, self.port.plan.source, self.port.plan.target)
        if target is None or text == target:
            return False
        function = call.func
        if (early := answer_before_init(self.port, node, _ASKS.get(target, ""))) is not None:
            self._write_answer(node, function, early)
            return True
        self.port.attempt(node, lambda: self._write(node, self._spelled(function, target)))
        return True

    def _port_object(self, node: cst.Call) -> bool:
        """Port a call that makes an object of a primitive. Returns whether it is one, and is ported."""
        known = primitive(self.port.file.imported(node.func) or "", self.port.plan.source)
        if known is None or not self.port.between_frameworks:
            return False
        self.port.done.add(node.func)
        if self.port.attempt(node, lambda: self._primitives.port(node, known)):
            return True
        self.port.done.update(each.value for each in node.args if self.port.is_op(each.value))  # they stay with it
        return False

    def _visit_call_of(self, node: cst.Call, function: cst.BaseExpression) -> None:
        name = self.port.file.imported(function) or self._functions.imported_in_several_ways(function)
        if name is not None:
            self._visit_call(node, function, name)
        elif isinstance(function, cst.Attribute) and function.value in self._groups:
            self._visit_member(function, node)
        elif self._functions.partial_of(node):
            first, *rest = node.args
            self._visit_call(node, first.value, self.port.file.imported(first.value) or "", rest)
        elif isinstance(function, cst.Name):
            self._visit_other_call(node, function)
        elif isinstance(function, cst.Attribute):
            report_possible_group(self.port, function, node)
            report_star(self.port, node, function)

    def _visit_other_call(self, node: cst.Call, function: cst.Name) -> None:
        name = self._functions.assigned_to(function)
        row = rows_with(name, self.port.plan.source)[0][0] if name is not None else ""
        if name is not None and (early := answer_before_init(self.port, node, row)) is not None:
            self._write(node, early)
        elif name is not None:
            self.port.attempt(node, lambda: self._of_variable(node, name))
        elif function.value == "hasattr" and literal_name(node) is not None and self._is_api(node.args[0].value):
            self.port.attempt(node, lambda: self._visit_hasattr(node))
        elif function.value in BY_NAME and node.args and self._is_api(node.args[0].value):
            module = self.port.file.code(node.args[0].value)
            why = f"{function.value} asks {module} for a name while the program runs"
            self.port.left(node, "name-at-run-time", why, "Write the target's name by hand.")

    def _visit_hasattr(self, node: cst.Call) -> None:
        """Port ``hasattr(module, "name")``."""
        module, asked = (argument.value for argument in node.args[:2])
        name = self.port.source.canonical(f"{self.port.file.imported(module)}.{literal_name(node)}")
        target = self.spelling.translated(name)
        if is_module(self.port.source, name) and not self.port.between_frameworks:
            return
        self.port.done.add(module)
        if is_module(self.port.source, name) or target is None or "." not in target or "(" in target:
            report_unknown(self.port, node, name)
            return
        spelled = self._spelled(module, target).rpartition(".")
        self._write(module, spelled[0])
        quote = asked.quote if isinstance(asked, cst.SimpleString) else '"'
        self._write(asked, f"{quote}{spelled[2]}{quote}")

    def _is_api(self, node: cst.BaseExpression) -> bool:
        name = self.port.file.imported(node)
        return name is not None and (is_module(self.port.source, name) or name.endswith(".ReduceOp"))

    def _of_variable(self, node: cst.Call, name: str) -> None:
        rows = rows_with(name, self.port.plan.source)
        port_call(self.port, node, node.args, name, rows, lambda other: self._spelled(node, other))
        self.port.places += 1

    def _visit_call(
        self, node: cst.Call, function: cst.BaseExpression, name: str, arguments: Sequence[cst.Arg] | None = None
    ) -> None:
        rows = rows_with(name, self.port.plan.source)
        port, given = self.port, node.args if arguments is None else arguments
        is_whole = arguments is None and port.between_frameworks
        returning = returned(name, port.plan.source) if is_whole else None
        if returning is not None:
            self._port_by(node, function, lambda spell: port_returning(port, node, returning, spell))
        elif is_whole and name == SPAWN:
            port.done.add(function)
            port.attempt(node, lambda: self._port_spawn(node, function))
        elif not rows and name in GROUP_CLASSES:
            port.done.add(function)
            why = f"{name} is called, and the frameworks' groups are not made from the same arguments"
            port.left(node, "no-equivalent", why, "Make the group with new_group, and port again.")
        elif rows and arguments is None and rows[0][0] in GROUP_MEMBERS and not forms_of(rows[0][0], port.plan.target):
            port.done.add(function)
            port.attempt(node, lambda: self._port_asking(node, function, rows[0]))
        elif (early := answer_before_init(port, node, rows[0][0] if rows and arguments is None else "")) is not None:
            port.done.add(function)
            self._write_answer(node, function, early)
        elif rows:
            if arguments is not None:
                report_early_value(port, node, rows[0][0])
            self._port_by(node, function, lambda spell: port_call(port, node, given, name, rows, spell))

    def _write_word(self, node: cst.BaseExpression, word: str) -> None:
        """Write *word*, which is Python's own, in place of *node*, a name of the API."""
        self.port.done.add(node)
        self.port.forget(node)
        self._write(node, word)

    def _write_answer(self, node: cst.BaseExpression, function: cst.BaseExpression, text: str) -> None:
        """Write *text* in place of *node*, which asks *function* of the API."""
        self.port.forget(function)
        self._write(node, text)

    def _port_by(
        self, node: cst.Call, function: cst.BaseExpression, change: Callable[[Callable[[str], str]], str]
    ) -> None:
        """Port the call of *function* by *change*, which takes how to spell a name in the function's place and returns the target's function."""

        def ported() -> None:
            target = change(lambda other: self._spelled(function, other))
            self._write(function, self._spelled(function, target))

        self.port.done.add(function)
        self.port.attempt(node, ported)

    def _port_spawn(self, node: cst.Call, function: cst.BaseExpression) -> None:
        """Port a call of ``torch.multiprocessing.spawn``, whose module is none of the API: only a name of its own is imported with it."""
        target = port_spawn(self.port, node, lambda other: self._spelled(node, other))
        self._write(function, self._spelled(function if isinstance(function, cst.Name) else node, target))

    def _port_asking(self, node: cst.Call, function: cst.BaseExpression, row: tuple[str, Form]) -> None:
        """Port a function that tells something of a group, where the target has a member of the group for that."""
        name, form = row
        values: dict[str, cst.BaseExpression] = {}
        for position, argument in enumerate(node.args):
            keyword = argument.keyword
            parameter = form.taking(position, None if keyword is None else keyword.value)
            if parameter is None or argument.star:
                raise Left("unpacked-arguments", f"the arguments of {form.name} are not certain", "Write them out.")
            values[parameter.role] = argument.value
        parts = list(values.values())
        if next(iter(values), None) != "group" and not exchange(self.port, parts):
            raise Left("group-not-given", f"{form.name} is asked without a group first", "Name the group first.")
        port_member(self.port, node, name, parts, lambda other: self._spelled(function, other))
        self.port.forget(function)

    def _spelled(self, node: cst.CSTNode, name: str) -> str:
        if isinstance(node, cst.Call) and self.port.file.imported(node) is not None:
            node = node.args[0].value  # of getattr
        text = self.spelling.spell(node, name)
        if text is None:
            why = f"this file has no import to which that of {name} could be added"
            raise Left("no-import", why, "Import it, and port again.")
        return text

    def _write(self, node: cst.BaseExpression, text: str) -> None:
        self.port.places += 1
        if text != self.port.file.code(node):
            self.port.edits.replace(*self.port.file.span(node), text)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._targets.add(node.target)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if isinstance(node.value, (cst.Call, cst.Name)) and self._port_expression(node):
            return False
        if node.value in self._groups and node not in self.port.done:
            self._visit_member(node, None)
        elif node not in self.port.done:
            report_possible_group(self.port, node, None)
        return self._visit_name(node)

    def visit_Name(self, node: cst.Name) -> bool:
        return self._visit_name(node)

    def _visit_member(self, node: cst.Attribute, call: cst.Call | None) -> None:
        row = member_row(self.port, node, call)
        whole: cst.CSTNode = node if call is None else call
        if row is not None:
            self.port.done.add(node)
            parts = [node.value, *(argument.value for argument in (call.args if call is not None else ()))]
            self.port.attempt(
                whole, lambda: port_member(self.port, whole, row, parts, lambda other: self._spelled(whole, other))
            )
        elif node not in self.port.done and self.port.between_frameworks:
            self.port.done.add(node)
            why = f"groups of {self.port.target.framework} have no counterpart of {node.attr.value}"
            advice = "Write by hand, with the target's functions of groups, what the code asks."
            self.port.left(whole, "group-member", why, advice)

    def _visit_name(self, node: cst.Name | cst.Attribute | cst.Call) -> bool:
        """Port a name of the API. Returns whether there is anything else in *node*."""
        name = self.port.file.imported(node)
        if node in self.port.done:
            return isinstance(node, cst.Attribute) and name is None
        if name is None:
            return not self._is_ambiguous(node)
        if not self._is_of_api(name):
            return False
        part: cst.BaseExpression = node
        while (known := self.port.file.imported(part)) is not None and not is_module(self.port.source, known):
            if name != known and known.rpartition(".")[2][:1].isupper():
                break  # a member that the target has not, although it has the class
            if self._port_value(part, known):
                return False
            if not isinstance(part, cst.Attribute):
                break
            part = part.value
        if not is_module(self.port.source, name):
            report_unknown(self.port, node, name)
        return False

    def _is_ambiguous(self, node: cst.BaseExpression) -> bool:
        """Report *node* if it may mean several things, of which at least one is of the API. Returns whether it is so."""
        names = self.port.file.imports_meant(node) if node not in self._targets else []
        if len(names) < 2 or not any(self._is_of_api(name) for name in names):
            return False
        why = f"{self.port.file.code(node)} is {' or '.join(names)}, as the program runs"
        self.port.left(node, "several-imports", why, "Have the name mean one thing, and port again.")
        return True

    def _is_of_api(self, name: str) -> bool:
        return self.port.source.is_collective(name) or recorded(name, self.port.plan.source) is not None

    def _port_value(self, node: cst.BaseExpression, name: str) -> bool:
        """Port a name that stands for itself, not in a call. Returns whether it is known."""
        plan = self.port.plan
        rows = rows_with(name, plan.source)
        if not rows:
            target = name_for(name, plan.source, plan.target)
        else:
            form = form_for(*rows[0], plan.target)
            if form is None or (len(rows) > 1 and form.name != name):
                return False
            target = form.name
            if node not in self._functions.followed:
                report_early_value(self.port, node, rows[0][0])
            if not self._functions.may_be_value(self.port, node, rows[0][1], form):
                self.port.left(node, *not_alike(name, form).note)
                return True
        if target is None:
            return False
        self.port.attempt(node, lambda: self._write(node, self._spelled(node, target)))
        return True
