"""The import of the target framework, whose tensors the ported statements use."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import ImportAssignment

from shim.port.apis import Api
from shim.port.edits import Edits
from shim.port.plan import Left
from shim.port.reading.source_file import SourceFile


class FrameworkImport:
    """Writes full names of *target*'s framework in *file*, and its import once one has been written."""

    def __init__(self, file: SourceFile, edits: Edits, target: Api) -> None:
        self._file = file
        self._edits = edits
        self._needed = False
        framework = self._target = target.framework
        self._framework = file.api.framework
        known = [each.local for each in file.top_level_imports if each.name == framework]
        self._local = known[0] if known else framework
        self._is_known = bool(known)
        while not known and self._local in file.words:
            self._local += "_"

    def spell(self, name: str) -> str:
        """Return how to write the target's *name*, which is a full name."""
        if not self._is_known and self._anchor() is None:
            why = f"this file has no import to which that of {self._target} could be added"
            raise Left("no-import", why, "Import it, and port again.")
        self._needed = True
        return self._local + name.removeprefix(self._target)

    def write(self) -> None:
        """Write the import, in place of that of the source where nothing uses it any more. Called when all else is ported."""
        if self._framework == self._target:
            return
        dead = [each for each in self._statements() if self._is_dead(each)]
        framework = self._target
        line = f"import {framework}" + ("" if self._local == framework else f" as {self._local}")
        add = self._needed and not self._is_known
        for statement in dead:
            if add:
                self._edits.replace(*self._file.span(statement), line)
                add = False
            else:
                self._remove(statement)
        if add:
            anchor = self._anchor()
            assert anchor is not None
            start, end = self._file.span(anchor)
            self._edits.insert(end, self._file.indented(start, ["", line]))

    def _statements(self) -> list[cst.Import | cst.ImportFrom]:
        """The statements of the module's own block that import the source framework and none of its collectives, but for those that the port has replaced."""
        found = []
        for line in self._file.module.body:
            body = line.body if isinstance(line, cst.SimpleStatementLine) else ()
            if len(body) != 1 or not isinstance(body[0], (cst.Import, cst.ImportFrom)):
                continue
            names = [each.name for each in self._file.top_level_imports if each.statement is body[0]]
            is_there = not self._edits.replaces(*self._file.span(body[0]))
            if is_there and names and all(self._is_others(name) for name in names):
                found.append(body[0])
        return found

    def _is_others(self, name: str) -> bool:
        return f"{name}.".startswith(f"{self._framework}.") and not self._file.api.is_collective(
            self._file.api.canonical(name)
        )

    def _is_dead(self, statement: cst.Import | cst.ImportFrom) -> bool:
        """Tell whether the statement's names are all used, and all of their uses are ported."""
        scope = self._file.scope(statement)
        for assignment in scope.assignments if scope is not None else ():
            if isinstance(assignment, ImportAssignment) and assignment.node is statement:
                uses = [access.node for access in assignment.references]
                if not uses or not all(self._edits.replaces(*self._file.span(each)) for each in uses):
                    return False
        return True

    def _remove(self, statement: cst.CSTNode) -> None:
        start, end = self._file.span(statement)
        if self._file.text[end : end + 1] == b"\n":
            self._edits.remove(start, end + 1)

    def _anchor(self) -> cst.CSTNode | None:
        """The statement after which the import is written: the first of the module's own that names the source framework, or an ``import *``.

        Where a statement is all gone, with the end of its line, nothing can be written after it.
        """
        named = [
            statement
            for _, name, statement in self._file.top_level_imports
            if f"{self._file.api.canonical(name)}.".startswith(f"{self._framework}.")
        ]
        for statement in (*self._statements(), *named):
            start, end = self._file.span(statement)
            if not self._edits.replaces(start, end + 1):
                return statement
        return next((each for each in self._file.stars if each in self._file.always_run), None)
