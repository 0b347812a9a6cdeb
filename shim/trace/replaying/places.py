"""Calls that seem to come from the lines of the recorded program, so that the messages of a replay name these."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["call_from"]

_LINE = re.compile(r"(.*):(\d+)(?: in (.*))?$", re.DOTALL)
_MOST_LINES = 1_000_000  # of a program's file


def call_from(source: str, function: Callable[[], Any]) -> Any:
    """Return what *function*, one of C, returns when it is called from the line *source*: "/home/me/train.py:12 in step"."""
    return _caller_at(source)(function)


@cache
def _caller_at(source: str) -> Callable[[Callable[[], Any]], Any]:
    found = _LINE.fullmatch(source)
    file, line, name = (found[1], int(found[2]), found[3] or "<module>") if found else ("", 1, "")
    text = "\n" * (min(line, _MOST_LINES) - 1) + "def caller(function): return function()"
    # Code of core counts as no line of a program.
    names: dict[str, Any] = {"__name__": "__main__" if found else "shim.core"}
    exec(compile(text, file or "replay", "exec"), names)
    caller: Any = names["caller"]
    caller.__code__ = caller.__code__.replace(co_name=name or "replay")
    return caller  # type: ignore[no-any-return]
