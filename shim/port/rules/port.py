"""The port of one file while it is made: what is known, what is changed, what is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import libcst as cst

from shim.port.apis import APIS, Api
from shim.port.comments import Comments
from shim.port.edits import Edits
from shim.port.glue import GLUE_MODULE
from shim.port.plan import Entry, Left, Plan
from shim.port.reading.flows import Flows
from shim.port.reading.groups import FOUND, Groups, Kinds
from shim.port.reading.initialised import Initialised
from shim.port.reading.source_file import SourceFile, first_name
from shim.port.reading.tensor_kinds import TensorKinds
from shim.port.rules.framework_import import FrameworkImport


class Port:
    """Holds the file, the changes and the entries. The rules work on it."""

    def __init__(self, file: SourceFile, plan: Plan) -> None:
        self.file = file
        self.plan = plan
        self.source: Api = file.api  # with what the file has of it by way of other files
        self.target: Api = APIS[plan.target]
        self.edits = Edits(file.text)
        self.entries: list[Entry] = []
        self.places = 0
        self.done: set[cst.CSTNode] = set()  # what a rule has written itself
        self.statement: cst.SimpleStatementLine | None = None  # in which the walk is
        self.forgotten: Counter[str] = Counter()  # how many uses of each imported name the port has taken out
        self.standard_modules: dict[
            str, str
        ] = {}  # those of Python's library that the port needs imports of, with their names in the file
        self.asked_early: list[cst.CSTNode] = []  # questions to the API that may come before it is initialised
        self.before: dict[cst.CSTNode, cst.CSTNode] = {}  # each statement's one before it, in its block

    @cached_property
    def groups(self) -> Groups:
        """The expressions that are groups."""
        return Groups(self.file, self.plan.source, self.flows)

    def is_op(self, node: cst.BaseExpression) -> bool:
        """Tell whether *node* is certain to be a member of the source's ReduceOp."""
        return self._ops.of(node) is FOUND

    @cached_property
    def _ops(self) -> Kinds:
        return Kinds(self.flows, lambda node: ".ReduceOp." in (self.file.imported(node) or ""), lambda node: False)

    @cached_property
    def tensors(self) -> TensorKinds:
        """The expressions that are tensors, and what else has to do with them."""
        return TensorKinds(self.file, self.plan.source)

    @cached_property
    def framework(self) -> FrameworkImport:
        """The import of the target framework, by which names of its tensors are written."""
        return FrameworkImport(self.file, self.edits, self.target)

    @cached_property
    def flows(self) -> Flows:
        """What flows into the file's variables."""
        return Flows(self.file)

    @cached_property
    def comments(self) -> Comments:
        """The comments that leave lines alone."""
        return Comments(self.file.text.decode(), is_python=True)

    def visit(self, walk: cst.CSTVisitor) -> None:
        """Send *walk* over the file, but for the lines that are left alone."""
        spans, visit = self.comments.spans(), walk.on_visit

        def visit_others(node: cst.CSTNode) -> bool:
            with suppress(KeyError):  # layout has no place; a definition is also left by the walk
                start, end = self.file.span(node)
                if any(first <= start and end <= last for first, last in spans):
                    return isinstance(node, (cst.ClassDef, cst.FunctionDef)) and visit(node)
            return visit(node)

        if spans:
            walk.on_visit = visit_others  # type: ignore[method-assign]
        self.file.module.visit(walk)

    @cached_property
    def initialised(self) -> Initialised:
        """The places that run after the API is initialised."""
        return Initialised(self.flows, self.plan.source)

    def standard_module(self, name: str) -> str | None:
        """Return what the file calls the module *name* of Python's library, which it imports from now on; None where it cannot."""
        known = [each.local for each in self.file.top_level_imports if each.name == name]
        if not known and not self.first_imports:
            return None
        return known[0] if known else self.standard_modules.setdefault(name, self.new_name(name))

    @cached_property
    def first_imports(self) -> list[cst.CSTNode]:
        """The module's own import statements, in their order, without those from ``__future__``."""
        kinds = (cst.Import, cst.ImportFrom)
        found = [node for kind in kinds for node, _ in self.file.nodes.of(kind) if node in self.file.always_run]
        others = [node for node in found if "__future__" not in self.file.code(node)]
        return sorted(others, key=lambda node: self.file.span(node).start)

    def left(self, node: cst.CSTNode, rule: str, why: str, advice: str) -> None:
        """Report that *node* is as it was, and does not run on the target."""
        self.entries.append(Entry(*self.file.place(node), "left", rule, why, advice))

    def changed(self, node: cst.CSTNode, rule: str, why: str, advice: str) -> None:
        """Report that *node* is ported, and that something about it differs."""
        self.entries.append(Entry(*self.file.place(node), "changed", rule, why, advice))

    @property
    def between_frameworks(self) -> bool:
        """Whether the target is another framework, and not another version of the same."""
        return self.source.framework != self.target.framework

    def to_or_from(self, framework: str) -> bool:
        """Tell whether either the source or the target is *framework*, and not both."""
        return (self.source.framework == framework) != (self.target.framework == framework)

    def attempt(self, node: cst.CSTNode, change: Callable[[], None]) -> bool:
        """Make the *change* of *node*, or take back what is made of it and report why it is left. Returns whether it is made."""
        edits, entries = self.edits.mark(), len(self.entries)
        try:
            change()
        except Left as left:
            self.edits.undo(edits)
            del self.entries[entries:]
            self.left(node, *left.note)
            return False
        return True

    def check_statement(self, call: cst.Call) -> None:
        """Raise Left where no statement can be written before the one that *call* is in, as *call* is not all of it."""
        statement = self.statement
        if (
            statement is None
            or len(statement.body) != 1
            or not isinstance(statement.body[0], (cst.Expr, cst.Assign))
            or statement.body[0].value is not call
        ):
            raise Left(
                "needs-a-statement",
                "the target needs a statement before this call",
                "Write the call as a statement on a line of its own, and port again.",
            )

    def insert_before(self, text: str) -> None:
        """Write the statement *text* on a line of its own before the statement that the walk is in."""
        assert self.statement is not None
        start = self.file.span(self.statement.body[0]).start
        self.edits.insert(start, self.file.indented(start, [text, ""]))

    def forget(self, node: cst.CSTNode) -> None:
        """Say that *node*, a name of the API, is in the port no more, with nothing of the same name in its place."""
        first = first_name(node)
        if first is not None:
            self.forgotten[first.value] += 1

    def new_name(self, name: str) -> str:
        """Return *name*, with as many underscores after it as it takes to be no variable of the file."""
        while name in self.file.words:
            name += "_"
        return name

    def written(self, name: str) -> str:
        """Return the path by which the ported code imports the target's *name*."""
        if name.startswith(GLUE_MODULE):
            return f".{name}" if self.plan.in_package else name
        return self.target.written(name, native=self.plan.onto == "native")
