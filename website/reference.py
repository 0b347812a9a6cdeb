"""The pages of the reference: one for each module that users import, which mkdocstrings fills from its docstrings."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

from checks.source import Module, definition, is_public, modules, string_list
from shim.record import FRONTENDS, recorded_of

_ROOT = Path(__file__).resolve().parents[1]
# The modules of shim itself, with the names of those that have no list of them.
_OF_SHIM: dict[str, tuple[str, ...]] = {
    "shim": (),
    "shim.errors": (),
    "shim.types": (),
    "shim.testing": ("raises",),
    "shim.launch.pool": ("RankPool", "Outcome"),
    "shim.port": (),
    "shim.substitution": (),
}
_INDEX = """\
# Reference

One page for each module that you import. Every function says what it raises, where it differs from its framework, and
where the framework describes it. [What each frontend has](../support.md) lists the names that are not here, and why.
"""


def navigation() -> list[object]:
    """Return the part of the navigation that is made of these pages."""
    sections: list[object] = ["reference/index.md", "support.md", {"shim": [{name: _file(name)} for name in _OF_SHIM]}]
    for frontend, record in FRONTENDS.items():
        entries = [{module.name.removeprefix("shim.frontends."): _file(module.name)} for module in _frontend(frontend)]
        sections.append({record.replace("-", " "): entries})
    return sections


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its name."""
    texts = {"reference/index.md": _index()}
    for name, listed in _OF_SHIM.items():
        texts[_file(name)] = _page(name, list(listed or _names(_modules()[name])), [])
    for frontend in FRONTENDS:
        told: dict[int, str] = {}  # where the functions and classes of this frontend are described
        for module in _frontend(frontend):
            texts[_file(module.name)] = _frontend_page(module, told)
    return texts


def _frontend_page(module: Module, told: dict[int, str]) -> str:
    """Return the page of a frontend's *module*. What a page before it has *told* is only linked to."""
    own, others = [], []
    for name in _names(module):
        found = definition(_modules(), module, name)
        here = f"{module.name}.{name}"
        before = here if found is None else told.setdefault(id(found[1]), here)
        if before == here:
            own.append(name)
        else:
            others.append(f'<span id="{here}"></span>[`{name}`][{before}]')
    text = _page(module.name, own, _inherited(module, own))
    return text + f"\n## Described elsewhere\n\n{', '.join(others)}\n" if others else text


def _inherited(module: Module, names: list[str]) -> list[str]:
    """Return what the framework's classes have that ours inherit from a class without a page."""
    recorded = recorded_of(module.name)
    records = {} if recorded is None else recorded[1]
    found = [definition(_modules(), module, name) for name in names]
    told = {node.name for _, own in filter(None, found) for node in own.body if isinstance(node, ast.FunctionDef)}
    classes = [record for name, record in records.items() if name in names and not isinstance(record, str)]
    return sorted({member for record in classes for member in record if not member.startswith("_")} - told)


def _page(module: str, names: list[str], inherited: list[str]) -> str:
    options = {"members": names, "inherited_members": inherited}
    return f"# {module}\n\n::: {module}\n    options: {json.dumps(options)}\n"


def _index() -> str:
    lines = [_INDEX]
    for name in (*_OF_SHIM, *(module.name for frontend in FRONTENDS for module in _frontend(frontend))):
        first = (ast.get_docstring(_modules()[name].tree) or "").partition("\n")[0]
        lines.append(f"- [{name}]({name}.md): {first.replace('``', '`')}")
    return "\n".join([*lines, ""])


def _names(module: Module) -> list[str]:
    """Return what *module* lists in ``__all__``, but for modules."""
    return [name for name in string_list(module.tree, "__all__") or [] if f"{module.name}.{name}" not in _modules()]


@cache
def _frontend(frontend: str) -> list[Module]:
    """Return the modules of a *frontend* that stand for one of its framework's."""
    return [
        module
        for module in _modules().values()
        if module.name.startswith(f"{frontend}.")
        and is_public(module.name)
        and recorded_of(module.name) is not None
        and _names(module)
    ]


@cache
def _modules() -> dict[str, Module]:
    """Return the frontends' modules, and those of ``_OF_SHIM``, by their names."""
    found = {module.name: module for module in modules(_ROOT, "shim/frontends")}
    for name in _OF_SHIM:
        path = Path(*name.split("."))
        path = path / "__init__.py" if (_ROOT / path).is_dir() else path.with_suffix(".py")
        found[name] = Module(path, name, ast.parse((_ROOT / path).read_text(encoding="utf-8")))
    return found


def _file(module: str) -> str:
    return f"reference/{module}.md"
