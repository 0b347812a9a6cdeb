"""A frontend translates and does not decide: what its public functions may look like.

A public function is one without a leading underscore that a module below ``shim/frontends`` whose path has none lists
in ``__all__``, wherever in the frontends it is defined. It has a docstring of at most six lines, no decorator, and a straight
line of few statements: no loop, no branch but between two values, and none on the engine. So has one with an underscore that
is recorded of a framework, because programs call it there. Every parameter of every function in the frontends is read.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Set
from pathlib import Path

from checks.source import Function, Module, definition, is_public, modules, string_list

DOCSTRING_LINES = 6
STATEMENTS = 8

_STRAIGHT = (ast.Return, ast.Expr, ast.Raise, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)


def check(root: Path) -> list[str]:
    """Find the functions of the frontends that break the rules above."""
    by_name = {module.name: module for module in modules(root, "shim/frontends")}
    findings = []
    public = list(public_functions(by_name, _recorded_names(root)))
    called = {id(function) for _, _, function in public}
    for name, module, function in public:
        findings += [f"{module.path}:{function.lineno}: {name} {what}" for what in _faults(function)]
    for module in by_name.values():
        for function in _functions(module.tree):
            findings += [
                f"{module.path}:{function.lineno}: {function.name} ignores its parameter {parameter}:"
                " honour it, or raise UnsupportedError when it is not the default"
                for parameter in _unread(function, is_public(function.name) or id(function) in called)
            ]
    return findings


def _recorded_names(root: Path) -> set[str]:
    """Return the names with a leading underscore that are recorded of the frameworks."""
    files = (root / "shim/record").glob("*.json")
    modules_of = [json.loads(file.read_text(encoding="utf-8"))["modules"] for file in files]
    return {name for modules in modules_of for names in modules.values() for name in names if not is_public(name)}


def public_functions(
    by_name: dict[str, Module], recorded: Set[str] = frozenset()
) -> Iterator[tuple[str, Module, Function]]:
    """Yield each public function, those *recorded* too, once, under the name of the module that defines it."""
    seen = set()
    for module in by_name.values():
        if not is_public(module.name):
            continue
        for name in (*filter(is_public, string_list(module.tree, "__all__") or []), *sorted(recorded)):
            found = definition(by_name, module, name)
            if found is None or isinstance(found[1], ast.ClassDef) or id(found[1]) in seen:
                continue
            seen.add(id(found[1]))
            yield f"{found[0].name}.{found[1].name}", found[0], found[1]


def _faults(function: Function) -> Iterator[str]:
    docstring = ast.get_docstring(function)
    if docstring is None:
        yield "has no docstring"
    elif len(docstring.splitlines()) > DOCSTRING_LINES:
        yield f"has a docstring of {len(docstring.splitlines())} lines, at most {DOCSTRING_LINES}"
    if function.decorator_list:
        yield "has a decorator, which hides its signature"
    yield from _decisions(function.body[docstring is not None :])


def _decisions(body: list[ast.stmt]) -> Iterator[str]:
    """Yield what of *body* is not on a straight line."""
    if not 0 < len(body) <= STATEMENTS:
        yield f"has {len(body)} statements: write one to {STATEMENTS}"
    for statement in body:
        if not isinstance(statement, _STRAIGHT):
            yield f"has {_told(statement)} in it: write a straight line, or let core decide"
        for node in ast.walk(statement):
            if isinstance(node, ast.comprehension):
                yield "has a loop in it: let core decide"
            if isinstance(node, (ast.IfExp, ast.BoolOp)) and "engine" in _names_in(node):
                yield "has a branch on the engine in it: let core decide"


def _told(statement: ast.stmt) -> str:
    kind = type(statement).__name__.lower()
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _names_in(node: ast.AST) -> set[str]:
    return {
        part.attr if isinstance(part, ast.Attribute) else part.id
        for part in ast.walk(node)
        if isinstance(part, (ast.Attribute, ast.Name))
    }


def _functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def _unread(function: Function, public: bool) -> list[str]:
    """Return the parameters that the body of *function* never reads.

    A declaration reads none. A function that is not public may say that it is given more than it needs: by an
    underscore, or by deleting it.
    """
    if _is_declaration(function):
        return []
    uses = ast.Load if public else (ast.Load, ast.Del)
    read = {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, uses)
    }
    unread = [name for name in parameters_of(function.args) if name not in read and name not in ("self", "cls")]
    return unread if public else [name for name in unread if is_public(name)]


def _is_declaration(function: Function) -> bool:
    """Tell whether the body is ``...`` or raises NotImplementedError, its docstring aside."""
    body = function.body[ast.get_docstring(function) is not None :]
    return all(ast.unparse(statement) in ("...", "raise NotImplementedError") for statement in body)


def parameters_of(arguments: ast.arguments) -> list[str]:
    """Return the names of all parameters, in the order of the kinds of parameter."""
    variadic = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variadic)]
