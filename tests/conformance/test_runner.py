"""The run: every case once per kind of tensor, and nothing wrong goes unnoticed."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest

from shim.conformance import kinds, runner
from shim.conformance.documents.pages import DOCUMENTS, run_documents
from shim.conformance.kinds import KINDS, Selection, select_kinds
from shim.conformance.runner import Sight
from shim.launch.original import Original
from shim.launch.pool import Outcome

ONLY_NUMPY = Selection(present=("numpy",), missing=(), absent=())
EVERYTHING = Selection(present=KINDS, missing=(), absent=())


class NoOriginal(Original):
    """An original of which no copy is asked for: nothing is imported."""

    def start(self):
        pass


class PerfectPool:
    """Stands in for rank processes whose engine makes no mistake; ``corrupt`` is what a test adds."""

    asked: ClassVar[list[tuple[int, str, str, str]]] = []
    closed: ClassVar[int] = 0

    def __init__(self, size, original):
        assert isinstance(original, NoOriginal)
        self.size = size

    def run(self, target, *arguments, deadline):
        assert target == "shim.conformance.runner:see"
        case, kind = arguments
        PerfectPool.asked.append((self.size, case.document, case.name, kind))
        outcomes = [Outcome(rank, Sight(case.computed[rank], "1.0"), None) for rank in range(self.size)]
        return self.corrupt(outcomes)

    def corrupt(self, outcomes):
        return outcomes

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        PerfectPool.closed += 1


@pytest.fixture
def pool(monkeypatch):
    """Return a function that makes *corrupt* what happens to the outcomes of a perfect engine."""

    def use(corrupt=lambda self, outcomes: outcomes):
        monkeypatch.setattr(runner, "RankPool", type("Pool", (PerfectPool,), {"corrupt": corrupt}))
        monkeypatch.setattr(runner, "Original", NoOriginal)

    monkeypatch.setattr(PerfectPool, "asked", [])
    monkeypatch.setattr(PerfectPool, "closed", 0)
    return use


def test_every_case_passes_with_numpy():
    run = run_documents(DOCUMENTS, ONLY_NUMPY)
    assert [failure.details for result in run.results for failure in result.failures] == []
    assert run.passed
    assert run.versions["numpy"]


def test_a_changed_documented_value_fails_on_every_rank():
    page, case = DOCUMENTS[0], DOCUMENTS[0].cases[0]
    documented = tuple([array + 1, *others] for array, *others in case.documented)
    changed = dataclasses.replace(page, cases=(dataclasses.replace(case, documented=documented),))
    run = run_documents([changed], ONLY_NUMPY)
    assert not run.passed
    failures = run.results[0].failures
    assert [(failure.rank, failure.against) for failure in failures] == [(r, "documented") for r in range(4)]
    assert failures[1].expected.startswith("[2]")
    assert failures[1].seen.startswith("[1]")
    assert "2 was expected, 1 seen" in failures[1].details


def test_every_case_is_run_once_with_every_kind(pool):
    pool()
    run = run_documents(DOCUMENTS, EVERYTHING)
    expected = {
        (case.ranks, page.name, case.name, kind)
        for page in DOCUMENTS
        for case in page.cases
        for kind in KINDS
        if case.is_for(kind)
    }
    assert set(PerfectPool.asked) == expected
    assert len(PerfectPool.asked) == len(expected) == len(run.results)
    assert run.passed


def test_a_pool_serves_all_cases_of_a_kind_and_size_and_is_closed(pool):
    pool()
    run_documents(DOCUMENTS, EVERYTHING)
    assert PerfectPool.closed == len({(size, kind) for size, _, _, kind in PerfectPool.asked})


@pytest.mark.parametrize("rank", range(4))
def test_one_corrupted_element_on_one_rank_fails(pool, rank):
    def corrupt(self, outcomes):
        if outcomes[rank:] and outcomes[rank].value.seen:
            outcomes[rank].value.seen[-1].reshape(-1)[-1:] += 1
        return outcomes

    pool(corrupt)
    for page in DOCUMENTS:
        run = run_documents([page], ONLY_NUMPY)
        for result in run.results:
            corrupted = rank < result.subject.ranks and bool(result.subject.computed[rank])
            assert result.passed != corrupted
            assert {failure.rank for failure in result.failures} == ({rank} if corrupted else set())


def test_an_error_on_one_rank_fails_with_its_traceback(pool):
    def corrupt(self, outcomes):
        return [*outcomes[:-1], Outcome(outcomes[-1].rank, None, "Traceback: it died")]

    pool(corrupt)
    run = run_documents(DOCUMENTS, ONLY_NUMPY)
    assert not run.passed
    for result in run.results:
        assert [(failure.rank, failure.against) for failure in result.failures] == [(result.subject.ranks - 1, "call")]
        assert result.failures[0].details == "Traceback: it died"


def test_a_rank_that_says_nothing_fails(pool):
    pool(lambda self, outcomes: outcomes[1:])
    run = run_documents(DOCUMENTS, ONLY_NUMPY)
    assert not any(result.passed for result in run.results)
    assert "said nothing" in run.results[0].failures[0].details


def test_pools_are_closed_when_a_run_is_interrupted(pool):
    def corrupt(self, outcomes):
        raise KeyboardInterrupt

    pool(corrupt)
    with pytest.raises(KeyboardInterrupt):
        run_documents(DOCUMENTS, ONLY_NUMPY)
    assert PerfectPool.closed == 1


def test_results_are_told_as_they_come(pool):
    pool()
    told = []
    run = run_documents(DOCUMENTS[:1], ONLY_NUMPY, told.append)
    assert told == run.results
    assert len(told) == len(DOCUMENTS[0].cases)


def test_what_was_asked_for_and_is_not_installed_is_missing(monkeypatch, pool):
    pool()
    monkeypatch.setattr(kinds, "is_installed", lambda kind: kind == "numpy")
    selection = select_kinds(["torch", "numpy"])
    assert selection == Selection(("numpy",), ("torch",), ())
    run = run_documents(DOCUMENTS, selection)
    assert all(result.passed for result in run.results)
    assert not run.passed


def test_a_run_of_nothing_has_not_passed():
    assert not run_documents([], ONLY_NUMPY).passed
