"""The functions that use the framework's tensors and call no collective: what converts models has to port these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from shim.port.rules import Port
from shim.port.tensors.inference.collective_callers import CollectiveCallers

_NAMED = 3


@dataclass
class UnportedFunctions:
    """``uses`` has the names that each of them uses; a class is one of them if none of its methods calls a collective."""

    uses: dict[cst.CSTNode, tuple[str, dict[str, None]]] = field(default_factory=dict)

    def add(
        self, outer: Sequence[cst.FunctionDef | cst.ClassDef], node: cst.CSTNode, name: str, callers: CollectiveCallers
    ) -> None:
        """Add the use of *name* by *node*, which is in the functions and classes *outer*."""
        owner: cst.CSTNode | None = None
        said = ""
        for each in outer:
            said = f"{said}.{each.name.value}".lstrip(".")
            owner = each.name
            if isinstance(each, cst.FunctionDef) or not any(part in callers.functions for part in each.body.body):
                break
        place = owner if owner is not None else node
        known = self.uses.setdefault(place if owner is not None else _MODULE, (said, {}))[1]
        if owner is None and not known:
            self.first = node
        known[name] = None

    first: cst.CSTNode | None = None

    def report(self, port: Port) -> None:
        """Report each with the first of its names."""
        for owner, (said, names) in self.uses.items():
            shown = ", ".join(list(names)[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
            place = self.first if owner is _MODULE and self.first is not None else owner
            port.report(
                place,
                "left",
                "for-model-converter",
                f"{said or 'code outside of functions'} uses {shown} and calls no collective",
                "Port it by a converter of models, or by hand, before tensors pass between it and the ported functions.",
            )


_MODULE = cst.Module(body=[])
