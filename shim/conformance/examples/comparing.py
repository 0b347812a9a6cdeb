"""Compares what a rank saw with what the document shows, where documents are inexact in how they write it.

Numbers are compared as numbers (``1`` and ``1.``, ``1+1j`` and ``1.+1.j`` are the same). Spaces, commas, the kind of quotes and where a
tensor lies are not compared; everything else is: words, brackets, the order of all of it. Where the document shows the bare elements of
what the framework prints with a header, as Paddle's does, the elements are compared. Documents show ``tensor([1])`` of any dtype too; a
user's own case means what torch prints, where the dtype and ``requires_grad`` are left out only if they are the default.

A document that shows what an example has not waited for is wrong, whatever was seen. A record tells one difference from another by how
many places differ.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any

_REAL = r"(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf|nan)"
_TOKEN = re.compile(rf"[+-]?{_REAL}\s?[+-]\s?{_REAL}j|[+-]?{_REAL}j?(?![A-Za-z_])|\w+|[^\w\s]")
_PLACES = re.compile(r",?\s*(?:device=[\"'][\w:]+[\"']|place=Place\([\w:]+\)|place=[\w]+Place)")
_TENSOR = re.compile(r"\b(?:\w+\.)?tensor\(")
_DECIMALS = re.compile(r"\.(\d*)")
_IGNORED = frozenset(",;")
_FEW_DIGITS = 4  # so many decimals are shown of numbers that have more
_EXACT = 1e-6  # of a number: what single precision loses
_MOST = 6  # differences that are told
_LONGEST = 8  # items of each that are told
_WAITS = re.compile(r"(?<!def )\b(?:wait|synchronize)\w*\(")


@dataclass(frozen=True)
class Output:
    """What a statement printed, or displayed as its value (``echo``).

    ``text`` is what stood on the screen, ``tensors`` the same with every tensor in it written as ``tensor(`` its elements ``)``.
    """

    text: str
    tensors: str = ""
    echo: bool = False


class _Written:
    """A tensor in the midst of lists and dictionaries, written by its elements."""

    def __init__(self, elements: Any) -> None:
        self.elements = elements

    def __repr__(self) -> str:
        elements = repr(self.elements).replace("(", "").replace(")", "")  # around complex numbers
        return f"tensor({elements})"


def output_of(text: str, things: Sequence[Any], echo: bool = False) -> Output:
    """Return the output that stood on the screen as *text*, of printing or displaying *things*."""
    return Output(text, " ".join(str(_written(thing)) for thing in things), echo)


def _written(thing: Any) -> Any:
    """Return *thing* with the tensors in it replaced by what writes their elements."""
    if isinstance(thing, (list, tuple)):
        return [_written(entry) for entry in thing] if isinstance(thing, list) else tuple(map(_written, thing))
    if isinstance(thing, dict):
        return {key: _written(value) for key, value in thing.items()}
    for name in ("numpy", "asnumpy", "tolist"):
        if hasattr(thing, name) and hasattr(thing, "shape"):
            try:
                found = getattr(thing.detach() if hasattr(thing, "detach") else thing, name)()
                return _Written(found.tolist() if hasattr(found, "tolist") else found)
            except Exception:  # what has no such form here is compared as text
                continue
    return thing


def differs(wanted: str, outputs: Sequence[Output], own: int | None = None, exact: bool = False) -> str | None:
    """Return None where the last of *outputs* are what the document shows as *wanted*; otherwise say where they differ.

    A document may leave out what was printed a while before, but nothing of the last *own* outputs (None: of all),
    which are those of the code that the text stands after. Where it is *exact*, a tensor as torch prints it is not compared by its
    elements alone. Both texts follow the difference, whole.
    """
    own = len(outputs) if own is None else own
    texts = (output.text for output in outputs[-own:] if own)
    difference = _first_difference(wanted, outputs, own, exact)
    return difference and "\n".join(
        [difference, "shown:", indent(wanted, "  "), "seen:", indent("\n".join(texts) or "nothing", "  ")]
    )


def _first_difference(wanted: str, outputs: Sequence[Output], own: int, exact: bool) -> str | None:
    first: str | None = None
    for begin in range(len(outputs) - max(own, 1), -1, -1):
        difference = _differs(wanted, outputs[begin:], exact)
        if difference is None:
            return None
        if first is None or own == 0:
            first = difference
    return first or _differs(wanted, (), exact)


def _differs(wanted: str, outputs: Sequence[Output], exact: bool) -> str | None:
    text = "\n".join(output.text for output in outputs)
    shown, seen = tokens_of(wanted), tokens_of(text)
    first = _difference(shown, seen)
    if first is None:
        return None
    written = "\n".join(output.tensors for output in outputs)
    tensors = bool(_TENSOR.search(wanted))
    if exact and tensors and _TENSOR.search(text):
        return f"{first}; {all_differences(shown, seen)}"
    other = _difference(tokens_of(_TENSOR.sub("tensor(", wanted)), tokens_of(written if tensors else _bare(written)))
    return None if other is None else f"{first}; {all_differences(shown, seen)}"


def _bare(text: str) -> str:
    """Return *text* without the ``tensor(`` and ``)`` around elements, which are nested lists of numbers."""
    return re.sub(r"tensor\(([^()]*)\)", r"\1", text)


def tokens_of(text: str) -> list[str]:
    """Return what is compared of *text*: its words, numbers and brackets."""
    found = _TOKEN.findall(_PLACES.sub("", text).replace('"', "'"))
    return [token for token in found if token not in _IGNORED]


def _difference(wanted: Sequence[str], seen: Sequence[str]) -> str | None:
    for position, (a, b) in enumerate(zip(wanted, seen, strict=False)):
        if a != b and not _same_number(a, b):
            return f"item {position + 1}: shown {a}, seen {b}"
    if len(wanted) != len(seen):
        rest = wanted if len(wanted) > len(seen) else seen
        what = "shown, not seen" if len(wanted) > len(seen) else "seen, not shown"
        return f"{what}: {' '.join(rest[min(len(wanted), len(seen)) :][:8])}"
    return None


def _same_number(a: str, b: str) -> bool:
    try:
        x, y = complex(a.replace(" ", "")), complex(b.replace(" ", ""))
    except ValueError:
        return False
    if x == y or (x.real != x.real and y.real != y.real):
        return True
    size = max(abs(x), abs(y))
    if not math.isfinite(size):
        return False
    if "e" in (a + b).lower():
        return abs(x - y) <= 10.0**-_FEW_DIGITS * size
    if "." not in a + b:
        return False
    rounding = 10.0**-_FEW_DIGITS if min(_decimals(a), _decimals(b)) >= _FEW_DIGITS else 0.0
    return abs(x - y) <= max(rounding, _EXACT * size)


def _decimals(number: str) -> int:
    return max((len(part) for part in _DECIMALS.findall(number)), default=0)


def all_differences(shown: Sequence[str], seen: Sequence[str]) -> str:
    """Return where the items *shown* differ from those *seen*, in a line such as ``in all: ( for [, = for nothing``."""
    matcher = difflib.SequenceMatcher(None, list(map(_plain, shown)), list(map(_plain, seen)), autojunk=False)
    found = [
        f"{_text(shown[begin:end])} for {_text(seen[start:stop])}"
        for what, begin, end, start, stop in matcher.get_opcodes()
        if what != "equal"
    ]
    rest = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
    return f"in all: {', '.join([*found[:_MOST], *rest])}"


def _plain(item: str) -> str:
    """Return a number as all documents that mean it write it, and other items as they are."""
    try:
        return f"{complex(item.replace(' ', '')):.4g}"
    except ValueError:
        return item


def _text(items: Sequence[str]) -> str:
    return " ".join([*items[:_LONGEST], *(["..."] if len(items) > _LONGEST else [])]) or "nothing"


def unwaited(names: Mapping[str, Any], sources: Iterable[str]) -> str | None:
    """Return which of *names* holds a handle, where none of the *sources* that have run waits for anything; else None."""
    if any(map(_WAITS.search, sources)):
        return None
    return next((name for name, value in names.items() if not name.startswith("_") and _holds_handle(value)), None)


def _holds_handle(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(is_handle, value))
    return is_handle(value)


def is_handle(value: Any) -> bool:
    """Tell whether *value* has a ``wait()`` that needs no argument: a store's needs the keys to wait for."""
    wait = None if inspect.isclass(value) or inspect.ismodule(value) else getattr(value, "wait", None)
    try:
        return callable(wait) and inspect.signature(wait).bind() is not None
    except (TypeError, ValueError):
        return False
