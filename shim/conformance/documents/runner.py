"""Run cases on rank processes with every kind of tensor, have each say what it saw, and check that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shim.conformance.assertions import assert_same_arrays
from shim.conformance.documents.case import Array, Case, Document
from shim.conformance.documents.cases import case_named
from shim.conformance.kinds import Selection, kind_named
from shim.conformance.rank_runner import Call, Seen, leave_world, run_in_ranks
from shim.core.job import rendezvous


@dataclass(frozen=True)
class Failure:
    """What one rank did not do as it should.

    ``against`` is ``documented`` or ``oracle``, whose values are ``expected``; or ``call``, when the case ended with an
    error. ``details`` is what differs, or the traceback.
    """

    rank: int
    against: str
    expected: str
    seen: str
    details: str


@dataclass(frozen=True)
class Result:
    """How one case went with one kind of tensor, in ``seconds``; ``seen`` is each rank's tensors as text, where it has any."""

    document: str
    case: str
    kind: str
    ranks: int
    seconds: float
    failures: tuple[Failure, ...]
    seen: Mapping[int, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.failures


@dataclass
class Run:
    """Everything that one run of the conformance suite found; ``versions`` is by kind of tensor."""

    documents: tuple[Document, ...]
    selection: Selection
    results: list[Result] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Tell whether something ran, all that ran passed, and nothing that was asked for was missing."""
        return bool(self.results) and not self.selection.missing and all(result.passed for result in self.results)

    def results_of(self, document: Document, kind: str) -> list[Result]:
        return [result for result in self.results if (result.document, result.kind) == (document.name, kind)]


def run_documents(
    documents: Sequence[Document], selection: Selection, on_result: Callable[[Result], None] = lambda result: None
) -> Run:
    """Run every case of *documents* with every kind of tensor that is present; tell *on_result* of each as it ends."""
    run = Run(tuple(documents), selection)
    begin = time.perf_counter()

    def on_seen(call: Call, seen: Seen) -> bool:
        page, case = call.what
        run.results.append(_result(page, case, call.kind, seen, run.versions))
        on_result(run.results[-1])
        return run.results[-1].passed

    calls = [
        Call((page, case), kind, case.ranks, (page.name, case.name, kind))
        for kind in selection.present
        for page in documents
        for case in page.cases
        if case.is_for(kind)
    ]
    run_in_ranks("shim.conformance.documents.runner:see_case", calls, on_seen)
    run.seconds = time.perf_counter() - begin
    return run


def _result(document: Document, case: Case, kind: str, seen: Seen, versions: dict[str, str]) -> Result:
    versions.update((kind, sight.version) for sight in seen.values.values())
    failures = [Failure(rank, "call", "", "", error) for rank, error in seen.errors.items()]
    failures += check_sights(case, {rank: sight.arrays for rank, sight in seen.values.items()})
    texts = {rank: as_text(sight.arrays) for rank, sight in seen.values.items()}
    return Result(document.name, case.name, kind, case.ranks, seen.seconds, tuple(failures), texts)


def check_sights(case: Case, seen: dict[int, list[Array]]) -> list[Failure]:
    """Compare what ranks saw with what the document prints, and with what the oracle computes from all ranks' inputs."""
    computed = case.oracle([case.inputs(rank) for rank in range(case.ranks)])
    failures = []
    for rank, arrays in sorted(seen.items()):
        if case.documented is not None:
            failures += _differences(rank, "documented", case.documented[rank], arrays)
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
class Sight:
    """What one rank saw: the tensors of a case, and the version of the framework they were made with."""

    arrays: list[Array]
    version: str


def see_case(document: str, case: str, kind: str) -> Sight:
    """Run a case on this rank, leave the world it has entered, and return what was seen."""
    tensors = kind_named(kind)
    rank = rendezvous.locate().rank
    example = case_named(document, case)
    try:
        outputs = example.call(tensors, rank, example.inputs(rank))
        return Sight([tensors.read(output) for output in outputs], tensors.version)
    finally:
        leave_world()
