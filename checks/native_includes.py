"""The engine's folders include each other in one direction only, as ``native/README.md`` draws them."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

# What each folder of native/ may include beside itself. A folder stands below all that include it.
MAY_INCLUDE: dict[str, tuple[str, ...]] = {
    "platform": (),
    "machine": ("platform",),
    "tensors": ("platform",),
    "lending": ("platform",),
    "hooks": ("lending",),
    "kernels": ("tensors",),
    "group": ("lending", "machine", "platform", "tensors"),
    "reports": ("group", "platform"),
    "meeting": ("group", "machine", "platform", "reports"),
    "agreement": ("group", "machine", "platform", "tensors"),
    "collectives": ("agreement", "group", "kernels", "machine", "platform", "tensors"),
    "wires": ("platform",),
    "crossing": ("collectives", "group", "platform", "tensors", "wires"),
    "messages": ("collectives", "group", "machine", "platform", "tensors"),
    "progress": ("collectives", "group", "messages", "platform"),
    "bindings/interpreter": ("platform",),
    "bindings/tensors": ("platform", "tensors"),
    "bindings/calls": (
        "bindings/interpreter", "bindings/tensors", "collectives", "crossing", "group", "meeting", "messages", "platform", "progress",
        "reports",
    ),
    "bindings": (
        "bindings/calls", "bindings/interpreter", "bindings/tensors", "group", "hooks", "lending", "machine", "meeting",
        "platform", "progress", "reports", "tensors",
    ),
    "floor": (),
    "model": (),
    "fuzz": ("bindings/tensors", "group", "meeting", "platform"),
    "tests": (
        "collectives", "crossing", "group", "kernels", "lending", "machine", "meeting", "messages", "platform", "progress",
        "reports", "tensors", "wires",
    ),
}  # fmt: skip

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def check(root: Path) -> list[str]:
    """Find includes that are not of the form "folder/file.hpp", or against ``MAY_INCLUDE``, and circles of files."""
    native = root / "native"
    included = {
        file.relative_to(native).as_posix(): _INCLUDE.findall(file.read_text(encoding="utf-8"))
        for file in sorted(native.rglob("*"))
        if file.suffix in (".cpp", ".hpp")
    }
    findings = [
        f"native/{file}: {wrong}"
        for file, names in included.items()
        for name in names
        if (wrong := _wrong_with(file, name, included))
    ]
    return findings + [f"native/{' includes '.join(circle)}" for circle in _circles(included)]


def _wrong_with(file: str, name: str, known: dict[str, list[str]]) -> str:
    if name not in known:
        return f'"{name}" is no file of native/, from which includes are written as "folder/file.hpp"'
    folder, other = _folder_of(file), _folder_of(name)
    if folder == other or other in MAY_INCLUDE.get(folder, ()):
        return ""
    return f'{folder}/ may not include {other}/, as "{name}"'


def _folder_of(file: str) -> str:
    """Return the row of ``MAY_INCLUDE`` that *file* belongs to: its folder, or the nearest one above it that has a row."""
    folders = [parent.as_posix() for parent in PurePath(file).parents][:-1]
    return next((folder for folder in folders if folder in MAY_INCLUDE), folders[-1] if folders else file)


def _circles(included: dict[str, list[str]]) -> list[list[str]]:
    circles: list[list[str]] = []
    done: set[str] = set()

    def visit(file: str, way: list[str]) -> None:
        if file in way:
            circles.append([*way[way.index(file) :], file])
        elif file not in done:
            for name in included.get(file, ()):
                visit(name, [*way, file])
            done.add(file)

    for file in included:
        visit(file, [])
    return circles
