"""What a document is, and what a case is: one example of a document in our own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array

__all__ = ["Array", "Case", "Document", "Note", "by_rank", "framework_of", "name_of"]


@dataclass(frozen=True)
class Note:
    """Where a document is wrong: what it says, what is true, and the case that checks it."""

    says: str
    true: str
    case: str


@dataclass(frozen=True)
class Case:
    """One example: what each rank passes in, the call, and what each rank must see.

    ``call(kind, rank, inputs)`` runs on every rank: it initialises the world as the document does, makes tensors of *kind*
    from *inputs*, calls the frontend, checks what is returned, and returns the tensors to be looked at. ``oracle`` computes the same
    tensors from all ranks' inputs; ``documented`` holds, for each rank, those that the document prints, or is
    None where it prints none. ``kinds`` names the tensors the case is for, all of them when empty; ``frontend`` the module that it calls, where
    that is another than its document's.
    """

    name: str
    shows: str
    collective: str
    ranks: int
    inputs: Callable[[int], list[Array]]
    call: Callable[[TensorKind, int, list[Array]], Sequence[Any]]
    oracle: Callable[[list[list[Array]]], list[list[Array]]]
    documented: tuple[list[Array], ...] | None = None
    kinds: tuple[str, ...] = ()
    frontend: str | None = None

    def is_for(self, kind: str) -> bool:
        """Tell whether this case runs with tensors of *kind*."""
        return not self.kinds or kind in self.kinds


@dataclass(frozen=True)
class Document:
    """A page that shows a function by examples.

    ``name`` is the function it documents, ``frontend`` the module that stands in for that function's own;
    ``version`` says which releases of the framework the page describes.
    """

    name: str
    source: str
    version: str
    frontend: str
    cases: tuple[Case, ...]
    notes: tuple[Note, ...] = ()


def framework_of(document: Document) -> str:
    """Return the framework whose function *document* is about."""
    return document.frontend.split(".")[2].partition("_")[0]


def name_of(document: Document, case: Case) -> str:
    """Return what a case is called in the matrix."""
    return f"{document.name}: {case.name}"


def by_rank(dtype: str, *ranks: Sequence[Any]) -> tuple[list[Array], ...]:
    """Return what each rank sees as arrays of *dtype*: one argument per rank, a sequence of its tensors."""
    return tuple([np.array(values, dtype=dtype) for values in tensors] for tensors in ranks)
