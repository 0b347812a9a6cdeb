"""Import statements, once it is known what is used for the names that they bind."""

from __future__ import annotations

import libcst as cst

from shim.port.rules.port import Port
from shim.port.rules.remarks import report_unknown
from shim.port.rules.spelling import Import, Spelling, is_module


def port_imports(port: Port, spelling: Spelling, statements: list[cst.Import | cst.ImportFrom]) -> None:
    """Have the import *statements* of the file import what the ported code uses."""
    for name, local in sorted(port.standard_modules.items()):
        start = port.file.span(port.first_imports[0]).start
        line = f"import {name}" + ("" if local == name else f" as {local}")
        port.edits.insert(start, port.file.indented(start, [line, ""]))
    for statement in statements:
        import_ = spelling.imports.get(statement, Import(statement))
        lines = [_line(port, what, local) for what, local in import_.added.items()]
        if isinstance(statement, cst.Import):
            _port_import(port, import_, statement, lines)
        else:
            _port_from(port, spelling, import_, statement, lines)


def _port_import(port: Port, import_: Import, statement: cst.Import, lines: list[str]) -> None:
    for alias in statement.names:
        dotted = port.file.code(alias.name)
        name = port.source.canonical(dotted)
        if name == port.source.framework or not port.source.is_collective(name):
            continue
        if not is_module(port.source, name):
            report_unknown(port, alias, dotted)
            continue
        if alias.asname is None and not lines and len(statement.names) > 1:
            continue
        port.places += 1
        if alias.asname is None and not lines and import_.is_spare:
            _remove(port, statement)
        else:
            new = port.source.framework if alias.asname is None and lines else port.written(port.target.main)
            port.edits.replace(*port.file.span(alias.name), new)
    _append(port, statement, lines)


def _port_from(port: Port, spelling: Spelling, import_: Import, statement: cst.ImportFrom, lines: list[str]) -> None:
    dotted = "." * len(statement.relative) + (port.file.code(statement.module) if statement.module is not None else "")
    module = port.source.canonical(dotted)
    if isinstance(statement.names, cst.ImportStar):
        if is_module(port.source, module) or any(name.startswith(f"{dotted}.") for name, _ in port.plan.reexports):
            port.left(
                statement,
                "star-import",
                f"import * from {dotted} hides which names come from it",
                "Import the names one by one, and port again.",
            )
        _append(port, statement, lines)
        return
    is_of_others = not port.source.is_collective(module) and bool(port.plan.reexports)
    if is_of_others and port.plan.onto == "native" and not port.between_frameworks:
        return  # the other file goes on importing what this one has from it
    if statement.relative and not any(
        port.source.is_collective(_imported(port, dotted, alias)) for alias in statement.names
    ):
        _append(port, statement, lines)
        return
    kept: list[cst.ImportAlias] = []
    ported: list[tuple[str, str]] = []
    for alias in statement.names:
        new = _of_alias(port, spelling, import_, dotted, alias)
        if new is None:
            kept.append(alias)
            name = _imported(port, dotted, alias)
            if (
                port.source.is_collective(name)
                and not is_module(port.source, name)
                and not import_.used.get(_local(port, alias))
            ):
                report_unknown(port, alias, name)
        else:
            ported += new
    if ported and not kept and not lines and _in_place(port, statement, ported):
        return
    if not ported and not kept and not lines:
        _remove(port, statement)
        port.places += 1
    elif ported or not kept:
        port.places += 1
        by_module: dict[str, list[str]] = {}
        for name, local in ported:
            parent, _, last = name.rpartition(".")
            if local == "":
                lines.append(_line(port, name, last))
            elif name == port.target.main:
                lines.append(_line(port, name, local))
            elif parent:
                by_module.setdefault(parent, []).append(last if last == local else f"{last} as {local}")
        lines = [
            f"from {port.written(parent)} import {', '.join(names)}" for parent, names in by_module.items()
        ] + lines
        if kept:
            names = ", ".join(port.file.code(alias) for alias in kept)
            lines.insert(0, f"from {dotted} import {names}")
        port.edits.replace(*port.file.span(statement), _joined(port, statement, list(dict.fromkeys(lines))))
    else:
        _append(port, statement, lines)


def _of_alias(
    port: Port, spelling: Spelling, import_: Import, dotted: str, alias: cst.ImportAlias
) -> list[tuple[str, str]] | None:
    """Return the names of the target, each with its local name, that take the place of *alias*; None where it stays."""
    name = _imported(port, dotted, alias)
    local = _local(port, alias)
    if not port.source.is_collective(name):
        return [] if 0 < port.file.uses_of(local) == port.forgotten[local] else None
    if is_module(port.source, name):
        is_same = port.written(port.target.main) == f"{dotted}.{port.file.code(alias.name)}"
        return None if is_same else [(port.target.main, local)]
    used = import_.used.get(local)
    if used:
        return list(used.items())
    if 0 < port.file.uses_of(local) == port.forgotten[local]:
        return []
    translated = spelling.translated(name)
    if translated is None:
        return None
    if "." not in translated:  # one of Python's own types, which needs no import
        return [] if port.file.uses_of(local) else None
    return [(translated.partition("(")[0], local)]


def _in_place(port: Port, statement: cst.ImportFrom, ported: list[tuple[str, str]]) -> bool:
    """Change the module and the names where they stand, if the statement can keep its layout."""
    parents = {name.rpartition(".")[0] for name, _ in ported}
    aliases = statement.names
    assert not isinstance(aliases, cst.ImportStar)
    if (
        statement.relative
        or len(parents) != 1
        or len(ported) != len(aliases)
        or not all(parents)
        or port.target.main in (name for name, _ in ported)
    ):
        return False
    assert statement.module is not None
    port.edits.replace(*port.file.span(statement.module), port.written(parents.pop()))
    port.places += 1
    for alias, (name, local) in zip(aliases, ported, strict=True):
        last = name.rpartition(".")[2]
        new = last if last == local else f"{last} as {local}"
        if port.file.code(alias) != new:
            port.edits.replace(*port.file.span(alias), new)
    return True


def _imported(port: Port, dotted: str, alias: cst.ImportAlias) -> str:
    """Return the canonical name of what *alias* imports from the module *dotted*, which may be dots alone."""
    return port.source.canonical(f"{dotted}{'.' * (not dotted.endswith('.'))}{port.file.code(alias.name)}")


def _local(port: Port, alias: cst.ImportAlias) -> str:
    return port.file.code(alias.asname.name if alias.asname is not None else alias.name)


def _line(port: Port, what: str, local: str) -> str:
    parent, _, last = what.rpartition(".")
    written = port.written(what)
    if what == port.target.main:
        return f"import {written} as {local}"
    return f"from {port.written(parent)} import {last}" + ("" if last == local else f" as {local}")


def _append(port: Port, statement: cst.Import | cst.ImportFrom, lines: list[str]) -> None:
    if lines:
        end = port.file.span(statement).end
        port.edits.insert(end, _joined(port, statement, ["", *lines]))


def _remove(port: Port, statement: cst.Import | cst.ImportFrom) -> None:
    """Take *statement* out, with its line where that has nothing else; ``pass`` takes its place where a statement may have to be."""
    start, end = port.file.span(statement)
    text = port.file.text
    first = text.rfind(b"\n", 0, start) + 1
    last = text.find(b"\n", end) + 1
    if statement in port.file.always_run and last and not text[first:start] and not text[end:last].strip():
        port.edits.replace(first, last, "")
    else:
        port.edits.replace(start, end, "pass")


def _joined(port: Port, statement: cst.CSTNode, lines: list[str]) -> str:
    """Return statements in *statement*'s place: on lines of their own, or beside each other where it shares its line."""
    start, end = port.file.span(statement)
    if port.file.text[end : end + 20].lstrip(b" \t").startswith(b";"):
        return "; ".join(lines)
    return port.file.indented(start, lines)
