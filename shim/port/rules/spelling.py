"""How a name of the target is written at a place in the file, and which imports that needs."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from shim.port.apis import Api
from shim.port.correspondences.names import name_for
from shim.port.correspondences.returning import returned
from shim.port.correspondences.table import form_for, forms_of, rows_with
from shim.port.reading.source_file import SOMETHING_ELSE, first_name
from shim.port.rules.port import Port


@dataclass
class Import:
    """What becomes of one import statement."""

    statement: cst.Import | cst.ImportFrom
    added: dict[str, str] = field(default_factory=dict)  # the target's module or name to the local name
    # Local name to the target's names, each with its local name.
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    is_spare: bool = False  # another statement, which always runs, imports what is added


class Spelling:
    """Writes the target's names in one file, and remembers what has to be imported for them, by the import statement to replace."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.imports: dict[cst.CSTNode, Import] = {}
        self._taken = set(port.file.words)

    def spell(self, node: cst.CSTNode, name: str) -> str | None:
        """Return how to write the target's *name* in place of *node*; None where no import statement can be found to add it to.

        If an import binds the first name of *node*, the name comes from what replaces that import; else from the file's first import of the API.
        *name* may end in a call.
        """
        if "." not in name:
            return name  # of Python itself
        name, bracket, arguments = name.partition("(")
        first = first_name(node)
        statements = self.port.file.imports_of(first) if first is not None else []
        bound = self._bound(first) if first is not None and statements else None
        if bound is None or first is None:
            text = self._anywhere(name) or self._beside_framework(name) or self._beside(statements, name)
        else:
            text = self._from(first.value, bound, name, statements)
        return None if text is None else text + bracket + arguments

    def _bound(self, name: cst.Name) -> str | None:
        """Return what the imports of *name* bind it to, the first of several that do the same."""
        meant = self.port.file.imports_meant(name)
        if len(meant) > 1 and meant[-1] != SOMETHING_ELSE:
            return meant[0]
        return self.port.file.imported(name)

    def _from(self, local: str, bound: str, name: str, statements: list[cst.Import | cst.ImportFrom]) -> str:
        if self.port.written(name).startswith(f"{bound}.") and not self.port.source.is_collective(bound):
            return local + name.removeprefix(bound)  # by the same framework, which has it
        if not self.port.source.is_collective(bound):  # the framework, or what has much else, such as mindspore.ops
            return self._anywhere(name) or self._below(
                self._added(statements, self.port.target.main, "dist"), self.port.target.main, name, statements
            )
        if is_module(self.port.source, bound):
            return self._below(local, self.port.target.main, name, statements)
        return self._of_imported(local, bound, name, statements)

    def _anywhere(self, name: str) -> str | None:
        """Write *name* by a module of the API that the file imports at its top level; None where it imports none."""
        file = self.port.file
        imports = sorted(file.top_level_imports, key=lambda each: each.statement not in file.always_run)
        for local, module, _ in imports:
            if is_module(self.port.source, file.api.canonical(module)):
                statements = [each.statement for each in imports if each.local == local]
                return self._below(local, self.port.target.main, name, statements)
        return None

    def _beside_framework(self, name: str) -> str | None:
        """Write *name* by an import to be added to the file's first import of the framework, or of something in it; None where there is none."""
        main = self.port.target.main
        for _, module, statement in self.port.file.top_level_imports:
            if statement in self.port.file.always_run and f"{module}.".startswith(f"{self.port.source.framework}."):
                return self._below(self._added([statement], main, "dist"), main, name, [statement])
        return None

    def _beside(self, statements: list[cst.Import | cst.ImportFrom], name: str) -> str | None:
        """Write *name* by an import to be added to *statements*, which import another file that has the API; None where there are none."""
        main = self.port.target.main
        return self._below(self._added(statements, main, "dist"), main, name, statements) if statements else None

    def _below(self, local: str, module: str, name: str, statements: list[cst.Import | cst.ImportFrom]) -> str:
        if name.startswith(f"{module}."):
            for statement in statements:
                self._import(statement)
            return f"{local}.{name.removeprefix(f'{module}.')}"
        return self._directly(name, statements)

    def _directly(self, name: str, statements: list[cst.Import | cst.ImportFrom]) -> str:
        """Write *name* with its class or function imported by its own name."""
        head, tail = _of_class(name)
        return self._added(statements, head, head.rpartition(".")[2]) + tail

    def _added(self, statements: list[cst.Import | cst.ImportFrom], what: str, local: str) -> str:
        """Have each of *statements* followed by an import of *what*, and return its local name, *local* where nothing else is called so."""
        known = next((added for each in statements if (added := self._import(each).added.get(what))), None)
        if known is None:
            known = local
            while known in self._taken:
                known += "_"
            self._taken.add(known)
        always = [statement for statement in statements if statement in self.port.file.always_run]
        carriers = always[:1] or statements
        for statement in statements:
            if statement in carriers:
                self._import(statement).added[what] = known
            else:
                self._import(statement).is_spare = True
        return known

    def _import(self, statement: cst.Import | cst.ImportFrom) -> Import:
        return self.imports.setdefault(statement, Import(statement))

    def _of_imported(self, local: str, bound: str, name: str, statements: list[cst.Import | cst.ImportFrom]) -> str:
        """Write *name* where the file has imported the source's *bound* as *local*."""
        of_bound = self.translated(bound)
        head, tail = (
            (of_bound, name[len(of_bound) :]) if of_bound and f"{name}.".startswith(f"{of_bound}.") else _of_class(name)
        )
        used = self._import(statements[0]).used.setdefault(local, {})
        if head not in used:
            used[head] = self._local_for(
                head, local, bound, is_first=head == of_bound or (of_bound is None and not used)
            )
        for statement in statements[1:]:
            self._import(statement).used.setdefault(local, {})[head] = used[head]
        return used[head] + tail

    def _local_for(self, name: str, local: str, bound: str, is_first: bool) -> str:
        """Return the local name of the target's *name*: the author's, if that was chosen by the author or is the same, else its own."""
        own = name.rpartition(".")[2]
        was_own = local == bound.rpartition(".")[2]
        if is_first and (not was_own or own == local):
            return local
        while own in self._taken:
            if is_first:
                return local
            own += "_"
        self._taken.add(own)
        return own

    def translated(self, name: str) -> str | None:
        """Return the target's name for the source's *name* where its use does not decide, None where there is none."""
        rows = rows_with(name, self.port.plan.source)
        if rows:
            form = form_for(*rows[0], self.port.plan.target)
            return form.name if form is not None else None
        returning = returned(name, self.port.plan.source)
        if returning is not None and self.port.between_frameworks:
            forms = forms_of(returning.row, self.port.plan.target)
            return forms[0].name if forms else None
        return name_for(name, self.port.plan.source, self.port.plan.target)


def _of_class(name: str) -> tuple[str, str]:
    """Return the name of the class that *name* is a member of, and the rest; *name* itself where it is none."""
    parent, _, last = name.rpartition(".")
    is_class = parent.rpartition(".")[2][:1].isupper() or parent == "torch.distributed.group"
    return (parent, f".{last}") if is_class else (name, "")


def is_module(api: Api, name: str) -> bool:
    """Tell whether the canonical *name* is a module of *api* whose names the table has."""
    return name in (api.main, *api.others, *_SUBMODULES)


_SUBMODULES = ("paddle.distributed.stream", "paddle.distributed.collective")
