"""The five documents that ``shim conformance`` has cases of, with tensors on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from device_kinds import kind_named

import shim
from shim.conformance.documents.case import Case
from shim.conformance.documents.pages import DOCUMENTS, case_named
from shim.conformance.kinds import TensorKind
from shim.conformance.kinds import kind_named as host_kind_named
from shim.conformance.oracle import Array
from shim.core import groups
from shim.core.job import rendezvous

# What is no failure of a kind: no tensor can be made like the fakes', and they cannot be copied to the host.
_REFUSALS = {"fake": ("cannot make a new tensor like", "must be a tensor, got", "must be in host memory, got")}


class _OnDevice(TensorKind):
    """The kind of tensors called *name*, on the first device."""

    def __init__(self, name: str) -> None:
        self.name, self._kind = name, kind_named(name)

    def split(self, tensor: Any, rows: Sequence[int]) -> list[Any]:
        return self._kind.split(tensor, list(rows))

    def read(self, tensor: Any) -> Array:
        return self._read(tensor)

    def _make(self, array: Array) -> Any:
        return self._kind.make(np.ascontiguousarray(array))

    def _read(self, tensor: Any) -> Array:
        return np.array(self._kind.values(tensor))


def cases_for(kind: str) -> list[Case]:
    """Return the cases that tensors of *kind* are for, those with the fewest ranks first."""
    cases = [case for document in DOCUMENTS for case in document.cases if case.is_for(kind)]
    return sorted(cases, key=lambda case: case.ranks)


def is_refusal(kind: str, error: str) -> bool:
    """Tell whether *error* is one with which tensors of *kind* are refused."""
    return any(words in error for words in _REFUSALS.get(kind, ()))


def see(document: str, name: str, kind: str, is_on_host: bool) -> tuple[list[Array], str]:
    """Carry out a case on this rank. Returns what is seen, and what tells which engines have served it."""
    case = case_named(document, name)
    tensors = host_kind_named(kind) if is_on_host else _OnDevice(kind)
    place = rendezvous.locate()
    try:
        return case.see(tensors, place.rank, place.size), shim.explain()
    finally:
        groups.close_world()
