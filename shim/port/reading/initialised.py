"""Find the places of a file that run only after initialisation: a call that initialises, or that fails without it, always runs before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from shim.port.correspondences.functions import COLLECTIVES, OBJECTS, POINT_TO_POINT
from shim.port.correspondences.returning import returned
from shim.port.correspondences.table import rows_with
from shim.port.reading.flows import Flows
from shim.port.reading.source_file import below

_NEED_IT = frozenset((*COLLECTIVES, *OBJECTS, *POINT_TO_POINT, "initialise", "new_group"))
_COMPOUND = (cst.If, cst.With, cst.Try, cst.For, cst.While, cst.FunctionDef, cst.ClassDef)
_LEAVES = (cst.Return, cst.Raise, cst.Continue, cst.Break)


class Initialised:
    """Knows the places of the file that *flows* are of, which uses *api*."""

    def __init__(self, flows: Flows, api: str) -> None:
        self._file, self._flows, self._api = flows.file, flows, api
        self._before: dict[cst.CSTNode, list[cst.CSTNode]] = {}  # each statement's own block
        nodes = self._file.nodes
        blocks = [self._file.module.body, *(node.body for node, _ in nodes.of(cst.IndentedBlock))]
        for block in blocks:
            self._before.update((statement, list(block)) for statement in block)
        self._callers: dict[cst.CSTNode, list[cst.Call]] = defaultdict(list)
        self._starts: list[cst.Call] = []  # calls that initialise
        for call, _ in nodes.of(cst.Call):
            if (called := flows.definitions.called(call)) is not None:
                self._callers[called.function].append(call)
            if self._is_of(call, frozenset(("initialise",))):
                self._starts.append(call)
        self._asked: dict[cst.CSTNode, bool] = {}

    def is_sure(self, node: cst.CSTNode) -> bool:
        """Tell whether the API is initialised whenever *node* runs, as far as the file shows its callers."""
        around = self._around(node)
        if self._is_guarded(node, around):
            return True
        looks_on = True
        for number in range(len(around) - 1, -1, -1):
            statement, inner = around[number], around[number + 1] if number + 1 < len(around) else node
            is_inside = isinstance(statement, cst.FunctionDef) and self._contains(statement.body, node)
            if is_inside and statement not in self._asked:
                self._asked[statement] = True  # while its callers are looked at
                calls = self._callers.get(statement, ())
                self._asked[statement] = bool(calls) and all(map(self.is_sure, calls))
            if is_inside and self._asked[statement]:
                return True
            block = self._before.get(statement, [])
            at = block.index(statement) if statement in block else 0
            if any(map(self._initialises, block[:at])):
                return True
            looks_on = looks_on and not (isinstance(statement, cst.If) and inner is node and _may_leave(statement))
            if looks_on and not self.has_start(node):
                for following in block[at:]:
                    if self._needs(following):
                        return True
                    if _may_leave(following) or self._initialises(following):
                        looks_on = False
                        break
            looks_on = looks_on and not is_inside
        return False

    def has_start(self, node: cst.CSTNode) -> bool:
        """Tell whether the function that *node* is in, or the module's own code, has a call that initialises."""
        own = self._function(node)
        return any(self._function(call) is own for call in self._starts)

    def is_caught(self, node: cst.CSTNode) -> bool:
        """Tell whether the program goes on where *node* raises an error."""
        for statement in self._around(node):
            if isinstance(statement, cst.Try) and self._contains(statement.body, node):
                return any(not _ends(handler.body, (cst.Raise,)) for handler in statement.handlers)
        return False

    def _function(self, node: cst.CSTNode) -> cst.CSTNode | None:
        functions = (each for each in reversed(self._around(node)) if isinstance(each, cst.FunctionDef))
        return next((each for each in functions if self._contains(each.body, node)), None)

    def _around(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Return the statements that *node* is in, outer ones first."""
        first, last = self._file.span(node)
        return [each for start, end, each in self._spans if start <= first and last <= end and each is not node]

    @cached_property
    def _spans(self) -> list[tuple[int, int, cst.CSTNode]]:
        """All statements with the bytes that they span, outer ones first."""
        found = [each for kind in (*_COMPOUND, cst.SimpleStatementLine) for each, _ in self._file.nodes.of(kind)]
        spans = [(*self._file.span(each), each) for each in found]
        return sorted(spans, key=lambda each: (each[0], -each[1]))

    def _contains(self, outer: cst.CSTNode, node: cst.CSTNode) -> bool:
        (start, end), (first, last) = self._file.span(outer), self._file.span(node)
        return start <= first and last <= end and outer is not node

    def _is_guarded(self, node: cst.CSTNode, around: list[cst.CSTNode]) -> bool:
        """Tell whether an ``if``, a choice or an ``and`` has *node* run only where ``is_initialized`` says so."""
        nodes = self._file.nodes
        choices: list[cst.If | cst.IfExp] = [statement for statement in around if isinstance(statement, cst.If)]
        choices += [each for each, _ in nodes.of(cst.IfExp) if self._contains(each, node)]
        for each in choices:
            part = each.body if self._answer(each.test) else each.orelse
            if self._answer(each.test) is not None and part is not None and self._is_in(part, node):
                return True
        tests = [each for each, _ in nodes.of(cst.BooleanOperation) if self._is_in(each.right, node)]
        return any(self._answer(test.left) is isinstance(test.operator, cst.And) for test in tests)

    def _is_in(self, part: cst.CSTNode, node: cst.CSTNode) -> bool:
        return part is node or self._contains(part, node)

    def _answer(self, test: cst.BaseExpression) -> bool | None:
        """Return what *test* is where the API is initialised, if it asks for that; None if it does not."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self._answer(test.expression)
            return None if inner is None else not inner
        if isinstance(test, cst.BooleanOperation):
            wanted = isinstance(test.operator, cst.And)
            return wanted if wanted in (self._answer(test.left), self._answer(test.right)) else None
        return True if self._is_of(test, frozenset(("is_initialized",))) else None

    def _is_of(self, node: cst.CSTNode, rows: frozenset[str]) -> bool:
        name = self._file.imported(node.func) if isinstance(node, cst.Call) else None
        return name is not None and any(row in rows for row, _ in rows_with(name, self._api))

    def _initialises(self, statement: cst.CSTNode) -> bool:
        """Tell whether the API is surely initialised where *statement* has run to its end."""
        if isinstance(statement, cst.If):
            answer = self._answer(statement.test)
            parts = [statement.body, statement.orelse]
            if answer is not None:
                parts = parts[1:] if answer else parts[:1]
            return all(part is not None and (_ends(part) or self._block(part)) for part in parts)
        if isinstance(statement, cst.Else):
            return self._block(statement.body)
        if isinstance(statement, cst.With):
            return self._block(statement.body)
        if isinstance(statement, cst.Try):
            return self._block(statement.body) and all(_ends(handler.body) for handler in statement.handlers)
        if isinstance(statement, _COMPOUND):
            return False
        return any(self._does(each) for each in below(statement) if isinstance(each, cst.Call))

    def _needs(self, statement: cst.CSTNode) -> bool:
        """Tell whether *statement* itself makes a call that fails without."""
        if isinstance(statement, cst.With):
            return any(map(self._needs, _statements(statement.body)))
        calls = (
            []
            if isinstance(statement, _COMPOUND)
            else [each for each in below(statement) if isinstance(each, cst.Call)]
        )
        return any(self._is_of(call, _NEED_IT - {"initialise"}) for call in calls)

    def _does(self, call: cst.Call) -> bool:
        name = self._file.imported(call.func)
        if name is not None and (self._is_of(call, _NEED_IT) or returned(name, self._api) is not None):
            return True
        called = self._flows.definitions.called(call)
        if called is None:
            return False
        key = called.function.body
        if key not in self._asked:
            self._asked[key] = False  # while a function that calls itself is looked at
            self._asked[key] = self._block(key)
        return self._asked[key]

    def _block(self, block: cst.CSTNode) -> bool:
        return any(map(self._initialises, _statements(block)))


def _statements(block: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(block, (cst.Else, cst.If)):
        yield from [block] if isinstance(block, cst.If) else _statements(block.body)
    else:
        yield from getattr(block, "body", ())


def _ends(block: cst.CSTNode, leaves: tuple[type[cst.CSTNode], ...] = _LEAVES) -> bool:
    """Tell whether *block* ends with one of *leaves*, so that nothing behind it runs after it."""
    last = next(reversed(list(_statements(block))), None)
    return isinstance(last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last, leaves)


def _may_leave(statement: cst.CSTNode) -> bool:
    return isinstance(statement, _COMPOUND) and any(isinstance(each, _LEAVES) for each in below(statement))
