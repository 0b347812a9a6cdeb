"""Badges for a README: how many of a framework's documented examples go as documented on its frontend.

``badges/NAME.svg`` is a picture, ``badges/NAME.json`` what shields.io makes one of (https://shields.io/badges/endpoint-badge).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PASSES = ("pass", "ran, nothing claimed")
_NOT_COUNTED = ("document wrong", "not runnable here")
_COLOURS = {"brightgreen": "#2e7d32", "red": "#c62828"}
_WIDTH = 6.6  # pixels of a character, at the size below
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{width}" height="20" rx="3" fill="#424242"/>
<path d="M{left} 0h{right}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right}z" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{middle_of_left}" y="14" textLength="{text_of_left}">{label}</text>
<text x="{middle_of_right}" y="14" textLength="{text_of_right}">{message}</text>
</g></svg>
"""


def badges(examples: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Return the text of each file of the badges by its path, given the *examples* of each frontend in one release, as in ``parity.json``."""
    files: dict[str, str] = {}
    for frontend, rows in examples.items():
        verdicts = [row["shim"]["verdict"] for row in rows]
        counted = [verdict for verdict in verdicts if verdict not in _NOT_COUNTED]
        if counted:
            name = frontend.removeprefix("shim.frontends.").partition("_")[0]
            told = _endpoint(name, sum(verdict in PASSES for verdict in counted), len(counted))
            files |= {f"badges/{name}.json": json.dumps(told), f"badges/{name}.svg": _picture(**told)}
    return files


def _endpoint(name: str, passed: int, of: int) -> dict[str, Any]:
    label = "mindspore communication" if name == "mindspore" else f"{name}.distributed"
    colour = "brightgreen" if passed == of else "red"
    return {"schemaVersion": 1, "label": f"{label} examples on shim", "message": f"{passed} of {of}", "color": colour}


def _picture(label: str, message: str, color: str, **_: Any) -> str:
    left, right = (round(len(text) * _WIDTH) + 10 for text in (label, message))
    return _SVG.format(
        label=label,
        message=message,
        colour=_COLOURS[color],
        width=left + right,
        left=left,
        right=right - 3,
        middle_of_left=left / 2,
        middle_of_right=left + right / 2,
        text_of_left=left - 10,
        text_of_right=right - 10,
    )
