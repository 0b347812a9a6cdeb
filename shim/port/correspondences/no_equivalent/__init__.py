"""What has no equivalent: every recorded function and class for which the table has neither a row nor a name, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.names import Declared
from shim.port.correspondences.no_equivalent.of_mindspore import OF_MINDSPORE
from shim.port.correspondences.no_equivalent.of_paddle import OF_PADDLE
from shim.port.correspondences.no_equivalent.of_torch import OF_TORCH

__all__ = ["Declared", "all_declared", "declared"]

_DECLARED = {"torch": OF_TORCH, "paddle": OF_PADDLE, "mindspore": OF_MINDSPORE}


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
    for module, groups in _DECLARED[APIS[source].framework].items():
        for group in groups:
            for name in group.names.split():
                found.setdefault(f"{module}.{name}", []).append(group)
    return found
