"""Runs cases of documents and cells of the tables on rank processes, and gathers what every rank saw and what is wrong with that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from shim.conformance.kinds import QUIET, Selection, TensorKind, kind_named
from shim.core import groups
from shim.core.callers import Caller
from shim.core.job import rendezvous
from shim.launch.original import Original
from shim.launch.pool import RankPool

_DEADLINE = 60.0  # seconds for one subject; most take milliseconds
_ME = Caller("shim conformance")


@dataclass(frozen=True)
class Failure:
    """What one rank did not do as it should.

    ``against`` is ``documented`` or ``oracle``, whose values are ``expected``; or ``call``, where it ended with an error, or found
    out itself what is wrong. ``details`` is what differs, or the traceback.
    """

    rank: int
    against: str
    expected: str
    seen: str
    details: str


class Subject(Protocol):
    """What is run: a case or a cell, which is pickled on its way to the ranks. ``place`` is what a failure is said to have happened in."""

    @property
    def ranks(self) -> int: ...

    @property
    def place(self) -> str: ...

    def see(self, kind: TensorKind, rank: int, size: int) -> Any:
        """Carry it out on this rank with tensors of *kind*, and return what is seen."""

    def judge(self, seen: Mapping[int, Any]) -> list[Failure]:
        """Say what is wrong with what ranks have seen."""


_Subject = TypeVar("_Subject", bound=Subject)


@dataclass(frozen=True)
class Result(Generic[_Subject]):
    """How a subject went with one kind of tensor, in ``seconds``; ``seen`` is by rank, without those that raised."""

    subject: _Subject
    kind: str
    seconds: float
    failures: tuple[Failure, ...] = ()
    seen: Mapping[int, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.failures


@dataclass
class Run(Generic[_Subject]):
    """Everything that one run found; ``not_run`` counts what no kind of tensor at hand can carry, ``versions`` is by kind of tensor."""

    subjects: tuple[_Subject, ...]
    selection: Selection
    results: list[Result[_Subject]] = field(default_factory=list)
    not_run: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Tell whether something ran, all that ran passed, and nothing was left out but by narrowing the selection."""
        complete = not self.not_run or self.selection.narrowed
        ran = bool(self.results) and not self.selection.missing
        return ran and complete and all(result.passed for result in self.results)


@dataclass(frozen=True)
class Sight:
    """What one rank saw, and the version of the framework whose tensors it had."""

    seen: Any
    version: str


def run_in_ranks(
    run: Run[_Subject],
    calls: Sequence[tuple[_Subject, str]],
    on_result: Callable[[Result[_Subject]], None],
    modules: Sequence[str] = (),
) -> Run[_Subject]:
    """Have ranks carry out *calls*, subjects with kinds of tensor, kind by kind; tell *on_result* of each and put all into *run*.

    Ranks are copies of a process that has imported the kind's framework and *modules*, one pool for each number of ranks. Where something went
    wrong, new ranks go on.
    """
    begin = time.perf_counter()
    for kind in dict.fromkeys(kind for _, kind in calls):
        of_kind = [subject for subject, its_kind in calls if its_kind == kind]
        with Original([kind, __name__, *modules], QUIET) as original:
            original.start()  # so that no subject's seconds have the import in them
            for ranks in sorted({subject.ranks for subject in of_kind}):
                with RankPool(ranks, original=original) as pool:
                    for subject in of_kind:
                        if subject.ranks == ranks:
                            run.results.append(_result(pool, subject, kind, run.versions))
                            on_result(run.results[-1])
                            if not run.results[-1].passed:
                                pool.close()
    run.seconds = time.perf_counter() - begin
    return run


def _result(pool: RankPool, subject: _Subject, kind: str, versions: dict[str, str]) -> Result[_Subject]:
    begin = time.perf_counter()
    outcomes = pool.run("shim.conformance.runner:see", subject, kind, deadline=_DEADLINE)
    seconds = time.perf_counter() - begin
    sights: dict[int, Sight] = {outcome.rank: outcome.value for outcome in outcomes if outcome.error is None}
    versions.update((kind, sight.version) for sight in sights.values())
    told = {outcome.rank: outcome.error for outcome in outcomes}
    failures = [
        Failure(rank, "call", "", "", told.get(rank) or "this rank said nothing")
        for rank in range(subject.ranks)
        if rank not in sights
    ]
    seen = {rank: sight.seen for rank, sight in sights.items()}
    return Result(subject, kind, seconds, (*failures, *subject.judge(seen)), seen)


def see(subject: Subject, kind: str) -> Sight:
    """Carry *subject* out on the rank that this process is, with tensors of *kind*, and leave the world that it has entered."""
    tensors, place = kind_named(kind), rendezvous.locate()
    try:
        return Sight(subject.see(tensors, place.rank, place.size), tensors.version)
    finally:
        if groups.is_initialized():
            groups.close_group(groups.world(_ME))
