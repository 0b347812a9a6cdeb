"""The matrix as one HTML page that needs nothing besides itself: no network, no other file."""

from __future__ import annotations

import json
from importlib import resources
from string import Template

from shim.conformance.matrix.as_json import as_json
from shim.conformance.matrix.cells import Matrix


def as_html(matrix: Matrix) -> str:
    """Return the page: ``page/page.html`` with the styles, the program and the matrix put in."""
    page = Template(_part("page.html"))
    return page.substitute(styles=_part("page.css"), program=_program(), data=_embedded(as_json(matrix)))


def _program() -> str:
    return "\n".join(_part(name) for name in ("build.js", "table.js", "panel.js", "page.js"))


def _part(name: str) -> str:
    return (resources.files("shim.conformance.matrix") / "page" / name).read_text(encoding="utf-8")


def _embedded(data: object) -> str:
    """Return *data* as JSON in which nothing can end a script element or begin a comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
