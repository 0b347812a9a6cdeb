"""``docs/support.md`` is written from what the frontends list in ``__all__`` and what is recorded of their frameworks.

``python -m checks.support`` writes it; the check compares what stands there with what would be written.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from checks.source import is_public, modules, string_list
from shim.conformance.signatures import recorded_of

__all__ = ["PAGE", "check", "render"]

PAGE = Path("docs/support.md")

_PREAMBLE = """\
# What each frontend has

The names of the frameworks' modules, as they are recorded of the versions that the frontends stand for, and which of
them this release has. Names with a leading underscore are left out of the second list.

This page is written from the frontends' `__all__` and from `shim/conformance/signatures/` by `python -m checks.support`.
"""


def check(root: Path) -> list[str]:
    """Find a page that is not what the frontends and the record say."""
    page = root / PAGE
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    if written == render(root):
        return []
    return [f"{PAGE}:1: is not what the frontends have: run python -m checks.support"]


def render(root: Path) -> str:
    """Return the whole page for the tree at *root*."""
    text = _PREAMBLE
    for module in modules(root, "shim/frontends"):
        found = recorded_of(module.name)
        offered = string_list(module.tree, "__all__") or []
        if not is_public(module.name) or found is None:
            continue
        signatures, names = found
        absent = [name for name in sorted(names) if is_public(name) and name not in offered]
        text += f"\n## {module.name}\n\nAs {signatures.framework} {signatures.version} has it.\n"
        text += f"\nHere: {_spans(offered)}.\n\nNot here: {_spans(absent)}.\n"
    return text


def _spans(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    (_root / PAGE).write_text(render(_root), encoding="utf-8")
