"""A frontend translates and does not decide: what its public functions may look like.

A public function is one without a leading underscore that a module below ``shim/frontends`` whose path has none lists
in ``__all__``, wherever in the frontends it is defined. It has a docstring of at most six lines, no decorator, and one statement,
as a rule a return, without loops and branches. So has one with an underscore that is recorded of a framework, because programs
call it there. Every parameter of every function in the frontends is read.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Set
from pathlib import Path

from checks.source import Function, Module, definition, is_public, modules, string_list

__all__ = ["DOCSTRING_LINES", "MAY_DECIDE", "check", "parameters_of", "public_functions"]

DOCSTRING_LINES = 6

# Recorded internals that are more than one return, below shim.frontends, each with the reason; the other rules hold for
# them too.
_CHECKS = "checks what it is given and nothing more: core has no such question"
_WARNS = "warns before it returns"
_TORCH = "has to import torch, whose objects it returns"
_ASKS = "a group is asked for, so that none is refused, and the answer is always the same"
MAY_DECIDE: dict[str, str] = {
    "_paddle.membership._warn_cur_rank_not_in_group": _WARNS,
    "torch.distributed._coalescing._coalescing_manager": "refuses a device",
    "torch.distributed._coalescing._time_estimator": "always refuses, once it is clear for which group",
    "torch.distributed._registry._canonicalize_group_rank": "takes a rank in either of two parameters",
    "torch.distributed._registry._device_capability": _ASKS,
    "torch.distributed._registry._get_global_rank": _WARNS,
    "torch.distributed._registry._get_group_size_by_name": "takes a group or its name",
    "torch.distributed._registry._get_pg_default_device": _TORCH,
    "torch.distributed._registry._get_process_group_name": "answers for what is no group too",
    "torch.distributed._registry._set_pg_timeout": "refuses all but one value",
    "torch.distributed._tensor_checks._check_single_tensor": _CHECKS,
    "torch.distributed._tensor_checks._check_tensor_list": _CHECKS,
    "torch.distributed._tensor_checks._ensure_all_tensors_same_dtype": _CHECKS,
    "torch.distributed._tensor_checks._object_to_tensor": _TORCH,
    "torch.distributed._tensor_checks._tensor_to_object": _ASKS,
}

_DECISIONS = {
    ast.For: "a loop",
    ast.AsyncFor: "a loop",
    ast.While: "a loop",
    ast.comprehension: "a loop",
    ast.If: "a branch",
    ast.IfExp: "a branch",
    ast.Match: "a branch",
    ast.Try: "a try",
}


def check(root: Path) -> list[str]:
    """Find the functions of the frontends that break the rules above, and allowances nobody uses."""
    by_name = {module.name: module for module in modules(root, "shim/frontends")}
    findings = []
    unused = set(MAY_DECIDE)
    public = list(public_functions(by_name, _recorded_names(root)))
    called = {id(function) for _, _, function in public}
    for name, module, function in public:
        decisions = list(_decisions(function))
        if decisions and (allowed := name.removeprefix("shim.frontends.")) in unused:
            unused.remove(allowed)
            decisions = []
        faults = [*_faults(function), *decisions]
        findings += [f"{module.path}:{function.lineno}: {name} {what}" for what in faults]
    for module in by_name.values():
        for function in _functions(module.tree):
            findings += [
                f"{module.path}:{function.lineno}: {function.name} ignores its parameter {parameter}:"
                " honour it, or raise UnsupportedError when it is not the default"
                for parameter in _unread(function, is_public(function.name) or id(function) in called)
            ]
    findings += [f"checks/frontend_functions.py: {name} may decide, and does not" for name in sorted(unused)]
    return findings


def _recorded_names(root: Path) -> set[str]:
    """Return the names with a leading underscore that are recorded of the frameworks."""
    files = (root / "shim/conformance/signatures").glob("*.json")
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


def _decisions(function: Function) -> Iterator[str]:
    docstring = ast.get_docstring(function)
    statements = function.body[docstring is not None :]
    plain = len(statements) == 1 and isinstance(statements[0], (ast.Return, ast.Expr, ast.Raise))
    if not plain:
        yield f"has {len(statements)} statements: leave one return"
    for node in ast.walk(function):
        if type(node) in _DECISIONS:
            yield f"has {_DECISIONS[type(node)]} in it: let core decide"


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
