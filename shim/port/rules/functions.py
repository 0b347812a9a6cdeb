"""Functions of the API as values: in variables, in ``functools.partial``, in P2POp."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from shim.port.correspondences import Form, rows_with
from shim.port.plan import Plan
from shim.port.reading import SourceFile


class Functions:
    """Knows the variables of *file* that hold functions of the API. The calls of those that are in one row are ported as calls of the function."""

    def __init__(self, file: SourceFile, plan: Plan) -> None:
        self._file = file
        self._plan = plan
        self._followed: set[cst.CSTNode] = set()
        for node, _ in file.nodes.of(cst.Call):  # the values of variables that are called
            if isinstance(node.func, cst.Name) and self.assigned_to(node.func) is not None:
                self._followed.update(file.values_of(node.func) or ())

    def assigned_to(self, variable: cst.Name) -> str | None:
        """Return the source's function that *variable* holds, or one of several that do the same with the same parameters; None where that is not certain."""
        if self._file.imported(variable) is not None:
            return None
        names = [
            self._file.imported(value)
            for value in self._file.values_of(variable) or ()
            if not isinstance(value, cst.Name) or value.value != "None"
        ]
        return self._agreed(names)

    def imported_in_several_ways(self, function: cst.CSTNode) -> str | None:
        """Return one of the source's functions that imports bind to *function*, as in try and except, if all do the same with the same parameters."""
        names = self._file.imports_meant(function)
        return self._agreed(names) if len(names) > 1 else None

    def _agreed(self, names: Sequence[str | None]) -> str | None:
        """Return the first of *names* if all are functions of one row with the same parameters."""
        rows = [rows_with(name, self._plan.source) if name else () for name in names]
        if not rows or any(len(each) != 1 for each in rows):
            return None
        return names[0] if len({(row, _roles(form)) for ((row, form),) in rows}) == 1 else None

    def partial_of(self, node: cst.Call) -> bool:
        """Tell whether *node* is a ``functools.partial`` of a function of the API."""
        called = self._file.code(node.func)
        if (
            called not in ("functools.partial", "partial")
            or not node.args
            or node.args[0].star
            or node.args[0].keyword is not None
        ):
            return False
        name = self._file.imported(node.args[0].value)
        return name is not None and bool(rows_with(name, self._plan.source))

    def may_be_value(self, node: cst.CSTNode, source: Form, target: Form) -> bool:
        """Tell whether *target* can stand where *node* is *source*: its calls are ported, or mean the same as they are."""
        return node in self._followed or _is_like(source, target)


def _roles(form: Form) -> tuple[tuple[str, str, bool], ...]:
    return tuple((parameter.name, parameter.role, parameter.inverted) for parameter in form.parameters)


def _is_like(one: Form, other: Form) -> bool:
    """Tell whether a call of *one* by positions, of the parameters that both have, means the same to *other*."""
    shared = min(len(one.parameters), len(other.parameters))
    return [(each.role, each.inverted) for each in one.parameters[:shared]] == [
        (each.role, each.inverted) for each in other.parameters[:shared]
    ]
