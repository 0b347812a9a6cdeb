"""Names of the API in strings: of a module that is imported while the program runs, of a function that a test replaces, in code that is evaluated."""

from __future__ import annotations

import re

import libcst as cst
from libcst import matchers

from shim.port.rules.port import Port
from shim.port.rules.spelling import is_module

__all__ = ["report_strings"]

_DOTTED = re.compile(r"\w+(\.\w+)+")
_LAUNCHERS = (".launch", ".run")  # modules that are started, which is for launch lines


def report_strings(port: Port) -> None:
    """Report the strings of the file that are a name of the API, or code that uses it and is evaluated; annotations are ported."""
    in_annotations = {
        id(string)
        for node, _ in port.file.nodes.of(cst.Annotation)
        for string in matchers.findall(node, matchers.SimpleString())
    }
    for node, _ in port.file.nodes.of(cst.SimpleString):
        text = node.evaluated_value if id(node) not in in_annotations else None
        name = port.source.canonical(text) if isinstance(text, str) and _DOTTED.fullmatch(text) else ""
        if port.source.is_collective(name) and not name.endswith(_LAUNCHERS):
            _report(port, node, f"{node.value} names something of the API while the program runs")
    imports = port.file.top_level_imports
    modules = [each.local for each in imports if is_module(port.source, port.source.canonical(each.name))]
    for call, _ in port.file.nodes.of(cst.Call):
        code = call.args[0].value if call.args else None
        is_run = isinstance(call.func, cst.Name) and call.func.value in ("eval", "exec")
        if is_run and isinstance(code, cst.SimpleString) and any(f"{local}." in code.value for local in modules):
            _report(port, code, f"{port.file.code(call.func)} runs code that uses the API")


def _report(port: Port, node: cst.CSTNode, why: str) -> None:
    port.report(node, "left", "name-at-run-time", why, "Write the target's names in the string by hand.")
