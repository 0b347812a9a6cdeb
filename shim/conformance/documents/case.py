"""What a document is, and what a case is: one example of a document in our own words, with every kind of tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shim.conformance.assertions import assert_same_arrays
from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array
from shim.conformance.runner import Failure


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
    None where it prints none. ``kinds`` names the tensors the case is for, all of them when empty. ``collective``, ``ranks`` and
    ``frontend``, the module that it calls, are those of its ``document`` unless they are given.
    """

    name: str
    shows: str
    inputs: Callable[[int], list[Array]]
    call: Callable[[TensorKind, int, list[Array]], Sequence[Any]]
    oracle: Callable[[list[list[Array]]], list[list[Array]]]
    documented: tuple[list[Array], ...] | None = None
    kinds: tuple[str, ...] = ()
    collective: str = ""
    ranks: int = 0
    frontend: str = ""
    document: str = ""

    @property
    def title(self) -> str:
        """What the case is called in the matrix."""
        return f"{self.document}: {self.name}"

    @property
    def place(self) -> str:
        return f"{self.document}, case {self.name!r}"

    @property
    def computed(self) -> list[list[Array]]:
        """What each rank must see by the oracle."""
        return self.oracle([self.inputs(rank) for rank in range(self.ranks)])

    def is_for(self, kind: str) -> bool:
        """Tell whether this case runs with tensors of *kind*."""
        return not self.kinds or kind in self.kinds

    def see(self, kind: TensorKind, rank: int, size: int) -> list[Array]:
        """Run the case on this rank and return what is seen."""
        return [kind.read(output) for output in self.call(kind, rank, self.inputs(rank))]

    def judge(self, seen: Mapping[int, list[Array]]) -> list[Failure]:
        """Compare what ranks saw with what the document prints, and with what the oracle computes from all ranks' inputs."""
        computed, failures = self.computed, []
        for rank, arrays in sorted(seen.items()):
            if self.documented is not None:
                failures += _differences(rank, "documented", self.documented[rank], arrays)
            failures += _differences(rank, "oracle", computed[rank], arrays)
        return failures


def _differences(rank: int, against: str, expected: list[Array], seen: list[Array]) -> list[Failure]:
    try:
        assert_same_arrays(seen, expected)
    except AssertionError as difference:
        return [Failure(rank, against, as_text(expected), as_text(seen), str(difference))]
    return []


def as_text(arrays: Sequence[Any]) -> str:
    """Return a rank's tensors as reports show them."""
    return ", ".join(np.array2string(array, separator=", ", threshold=64) for array in arrays)


@dataclass(frozen=True)
class Document:
    """A page that shows a function by examples.

    ``name`` is the function it documents, ``frontend`` the module that stands in for that function's own;
    ``version`` says which releases of the framework the page describes; ``collective`` and ``ranks`` are those of most cases.
    """

    name: str
    source: str
    version: str
    frontend: str
    collective: str
    ranks: int
    cases: tuple[Case, ...]
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        cases = (
            replace(
                case,
                collective=case.collective or self.collective,
                ranks=case.ranks or self.ranks,
                frontend=case.frontend or self.frontend,
                document=self.name,
            )
            for case in self.cases
        )
        object.__setattr__(self, "cases", tuple(cases))

    @property
    def framework(self) -> str:
        """The framework whose function the document is about."""
        return self.frontend.split(".")[2].partition("_")[0]


def no_tensors(rank: int) -> list[Array]:
    """The inputs of a case that needs none."""
    return []


def nothing_seen(inputs: list[list[Array]]) -> list[list[Array]]:
    """What the ranks see in a case that checks all of it itself."""
    return [[] for _ in inputs]


def by_rank(dtype: str, *ranks: Sequence[Any]) -> tuple[list[Array], ...]:
    """Return what each rank sees as arrays of *dtype*: one argument per rank, a sequence of its tensors."""
    return tuple([np.array(values, dtype=dtype) for values in tensors] for tensors in ranks)
