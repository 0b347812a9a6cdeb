"""Compares what an example gave with what its document shows, where documents are inexact in how they write it.

Numbers are compared as numbers (``1`` and ``1.``, ``1+1j`` and ``1.+1.j`` are the same), spaces, commas and where a tensor
lies are not compared; everything else is: words, brackets, the order of all of it. Where the document shows the bare
elements of what the framework prints with a header, as Paddle's does, the elements are compared.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Output", "differs", "plain"]

_REAL = r"(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf|nan)"
_TOKEN = re.compile(rf"[+-]?{_REAL}\s?[+-]\s?{_REAL}j|[+-]?{_REAL}j?(?![A-Za-z_])|\w+|[^\w\s]")
_PLACES = re.compile(r",?\s*(?:device=[\"'][\w:]+[\"']|place=Place\([\w:]+\)|place=[\w]+Place)")
_IGNORED = frozenset(",;")


@dataclass(frozen=True)
class Output:
    """What a statement printed or displayed: as text, and as nested lists of numbers where it was tensors or numbers."""

    text: str
    value: Any = None


def plain(thing: Any) -> Any:
    """Return *thing*, a tensor or nested sequence, as nested lists of numbers; None where it is something else."""
    if isinstance(thing, (bool, int, float, complex, str, bytes)):
        return None
    if isinstance(thing, (list, tuple)):
        inner = [entry if isinstance(entry, (bool, int, float, complex)) else plain(entry) for entry in thing]
        return None if any(entry is None for entry in inner) else inner
    for name in ("numpy", "asnumpy"):
        if hasattr(thing, name) and hasattr(thing, "shape"):
            try:
                return (thing.detach() if hasattr(thing, "detach") else thing).__getattribute__(name)().tolist()
            except Exception:  # what has no numpy form is compared as text
                return None
    return thing.tolist() if hasattr(thing, "tolist") else None


def differs(wanted: str, outputs: Sequence[Output]) -> str | None:
    """Return None where *outputs* are what the document shows as *wanted*; otherwise say where they differ."""
    seen = "\n".join(output.text for output in outputs)
    first = _difference(_tokens(wanted), _tokens(seen))
    if first is None:
        return None
    shown = _literal(wanted)
    if shown is not None:
        values = [output.value for output in outputs if output.value is not None]
        if any(_equal(shown, value) for value in [*values, values]):
            return None
    return first


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return None


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return False
    return _same_number(complex(a), complex(b)) if not isinstance(a, str) and not isinstance(b, str) else a == b


def _tokens(text: str) -> list[str | complex]:
    found = _TOKEN.findall(_PLACES.sub("", text))
    return [_number(token) for token in found if token not in _IGNORED]


def _number(token: str) -> str | complex:
    try:
        return complex(token.replace(" ", ""))
    except ValueError:
        return token


def _difference(wanted: Sequence[str | complex], seen: Sequence[str | complex]) -> str | None:
    for position, (a, b) in enumerate(zip(wanted, seen, strict=False)):
        same = _same_number(a, b) if isinstance(a, complex) and isinstance(b, complex) else a == b
        if not same:
            return f"item {position + 1}: shown {_text(a)}, seen {_text(b)}"
    if len(wanted) != len(seen):
        rest = wanted if len(wanted) > len(seen) else seen
        what = "shown, not seen" if len(wanted) > len(seen) else "seen, not shown"
        return f"{what}: {' '.join(map(_text, rest[min(len(wanted), len(seen)) :][:8]))}"
    return None


def _same_number(a: complex, b: complex) -> bool:
    if a == b or (math.isnan(a.real) and math.isnan(b.real)):
        return True
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b), 1.0)  # documents show four digits


def _text(token: str | complex) -> str:
    if isinstance(token, str):
        return token
    return f"{token.real:g}" if token.imag == 0 else str(token)
