"""What has no equivalent: every recorded function and class for which the table has neither a row nor a name, each with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from shim.port.apis import APIS
from shim.port.correspondences.no_equivalent.of_mindspore import OF_MINDSPORE
from shim.port.correspondences.no_equivalent.of_paddle import OF_PADDLE
from shim.port.correspondences.no_equivalent.of_torch import OF_TORCH

_DECLARED = {"torch": OF_TORCH, "paddle": OF_PADDLE, "mindspore": OF_MINDSPORE}


class Declared(NamedTuple):
    """Names that a target has nothing for, with the reason and what to do instead.

    ``names`` are separated by spaces, each without the module. What is below a name is declared with it.
    ``why`` goes on after "X has no equivalent of NAME: "; ``advice`` is a sentence. ``to`` are the APIs that have nothing; all others where it is empty.
    """

    names: str
    why: str
    advice: str
    to: str = ""


def declared(name: str, source: str, target: str) -> Declared | None:
    """Return why *target* has nothing for the *source*'s canonical *name*, or for what it is a part of; None where that is not declared."""
    table = all_declared(source)
    while name:
        for each in table.get(name, ()):
            if not each.to or target in each.to.split():
                return each
        name = name.rpartition(".")[0]
    return None


@cache
def all_declared(source: str) -> Mapping[str, Sequence[Declared]]:
    """Return what is declared of the API *source*, by the full name."""
    found: dict[str, list[Declared]] = {}
    for module, text in _DECLARED[APIS[source].framework].items():
        for each in _parsed(text):
            for name in each.names.split():
                found.setdefault(f"{module}.{name}", []).append(each)
    return found


def _parsed(text: str) -> Iterator[Declared]:
    """Yield what *text* declares: lines of names, then the reason, the advice, and the APIs if these are not all others, indented."""
    for found in re.finditer(r"((?:^\S.*\n)+)    (.*)\n    (.*)\n(?:    (.*)\n)?", text, re.MULTILINE):
        names, why, advice, to = found.groups(default="")
        yield Declared(" ".join(names.split()), why, advice, to)
