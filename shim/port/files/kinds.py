"""What a port does with a file, by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

# python: code and launch lines; notebook: the same in its cells; text: launch lines alone.
Kind = Literal["python", "notebook", "text"]

_BY_SUFFIX: dict[str, Kind] = {
    ".py": "python",
    ".pyi": "python",
    ".ipynb": "notebook",
    ".sh": "text",
    ".md": "text",
    ".rst": "text",
    ".txt": "text",
    ".yml": "text",
    ".yaml": "text",
}
_TEXTS = re.compile(r"Dockerfile(\..+)?|.+\.[Dd]ockerfile|(GNU)?[Mm]akefile|.+\.mk")
_PYTHON_SCRIPT = re.compile(rb"#![^\n]*\bpython[\d.]*\b")


def kind_by_name(path: Path) -> Kind | None:
    """Return the kind of the file *path* among others of its folder, None where a port passes it over."""
    if path.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix]
    return "text" if _TEXTS.fullmatch(path.name) else None


def kind_of(path: Path, content: bytes) -> Kind:
    """Return the kind of a file that the user has named, whatever its name: *content* is its beginning."""
    if (kind := kind_by_name(path)) is not None:
        return kind
    return "python" if path.suffix == ".pyw" or _PYTHON_SCRIPT.match(content) else "text"
