"""The import of the target framework, whose tensors the ported statements use."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import ImportAssignment

from shim.port.plan import Left
from shim.port.rules import Port


class Imports:
    """Writes full names of the target, and its import once one has been written."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._needed = False
        framework = port.target.framework
        self._framework = port.source.framework
        known = [each.local for each in port.file.top_level_imports if each.name == framework]
        self._local = known[0] if known else framework
        self._is_known = bool(known)
        while not known and self._local in port.file.words:
            self._local += "_"

    def spell(self, name: str) -> str:
        """Return how to write the target's *name*, which is a full name."""
        if not self._is_known and self._anchor() is None:
            raise Left(
                "no-import",
                f"this file has no import to which that of {self._port.target.framework} could be added",
                "Import it, and port again.",
            )
        self._needed = True
        return self._local + name.removeprefix(self._port.target.framework)

    def write(self) -> None:
        """Write the import, in place of that of the source where nothing uses it any more. Called when all else is ported."""
        if self._framework == self._port.target.framework:
            return
        dead = [each for each in self._statements() if self._is_dead(each)]
        framework = self._port.target.framework
        line = f"import {framework}" + ("" if self._local == framework else f" as {self._local}")
        add = self._needed and not self._is_known
        for statement in dead:
            if add:
                self._port.edits.replace(*self._port.file.span(statement), line)
                add = False
            else:
                self._remove(statement)
        if add:
            anchor = self._anchor()
            assert anchor is not None
            start, end = self._port.file.span(anchor)
            self._port.edits.insert(end, self._port.file.indented(start, ["", line]))

    def _statements(self) -> list[cst.Import | cst.ImportFrom]:
        """The statements of the module's own block that import the source framework and none of its collectives."""
        found = []
        for line in self._port.file.module.body:
            body = line.body if isinstance(line, cst.SimpleStatementLine) else ()
            if len(body) != 1 or not isinstance(body[0], (cst.Import, cst.ImportFrom)):
                continue
            names = [each.name for each in self._port.file.top_level_imports if each.statement is body[0]]
            if names and all(self._is_others(name) for name in names):
                found.append(body[0])
        return found

    def _is_others(self, name: str) -> bool:
        framework = self._port.source.framework
        return f"{name}.".startswith(f"{framework}.") and not self._port.source.is_collective(
            self._port.source.canonical(name)
        )

    def _is_dead(self, statement: cst.Import | cst.ImportFrom) -> bool:
        """Tell whether the statement's names are all used, and all of their uses are ported."""
        scope = self._port.file.scope(statement)
        for assignment in scope.assignments if scope is not None else ():
            if isinstance(assignment, ImportAssignment) and assignment.node is statement:
                uses = [access.node for access in assignment.references]
                if not uses or not all(self._port.edits.replaces(*self._port.file.span(each)) for each in uses):
                    return False
        return True

    def _remove(self, statement: cst.CSTNode) -> None:
        start, end = self._port.file.span(statement)
        if self._port.file.text[end : end + 1] == b"\n":
            self._port.edits.remove(start, end + 1)

    def _with_its_end(self, statement: cst.CSTNode) -> tuple[int, int]:
        """The bytes of *statement* and of its line's end: where they are all gone, nothing can be written after it."""
        start, end = self._port.file.span(statement)
        return start, end + 1

    def _anchor(self) -> cst.CSTNode | None:
        """The statement after which the import is written: the first of the module's own that names the source framework."""
        own = self._statements()
        named = (
            each.statement
            for each in self._port.file.top_level_imports
            if f"{self._port.file.api.canonical(each.name)}.".startswith(f"{self._framework}.")
            and not self._port.edits.replaces(*self._with_its_end(each.statement))
        )
        return own[0] if own else next(named, None)
