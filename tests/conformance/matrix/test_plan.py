"""What a run consists of, given what is installed and what was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import a_case_row, a_judgement, a_source_run

from shim.conformance import kinds, plan
from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import CASE, REFERENCE, SHIM, Part
from shim.conformance.plan import make_plan, matrix_of
from shim.conformance.runner import Run

SOURCES = {
    name: a_source_run(
        [a_judgement(f"{name}.distributed.x", framework=name), a_judgement(f"{name}.distributed.y", framework=name)],
        name,
    ).source
    for name in ("torch", "paddle", "mindspore")
}


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    """Everything but MindSpore is installed."""
    for module in (plan, kinds):
        monkeypatch.setattr(module, "is_installed", lambda name: name != "mindspore")


def planned(**choice):
    return make_plan(**choice, read=SOURCES.__getitem__)


def test_all_that_is_installed_is_planned():
    made = planned()
    assert [source.framework for source in made.sources] == ["torch", "paddle"]
    assert made.absent == ("mindspore",)
    assert made.missing == ()
    assert len(made.pages) == 5
    assert made.totals == {Part("torch", SHIM, "torch"): 2, Part("paddle", SHIM, "paddle"): 2}


def test_what_is_asked_for_by_name_is_missing_where_it_is_not_installed():
    made = planned(frameworks=["torch", "mindspore"])
    assert [source.framework for source in made.sources] == ["torch"]
    assert made.missing == ("mindspore",)
    assert {page.frontend.split(".")[2] for page in made.pages} == {"torch", "mindspore"}


def test_examples_run_with_the_kinds_of_tensor_that_are_asked_for_their_own_first():
    made = planned(kinds=["numpy", "paddle"])
    assert list(made.totals) == [
        Part("torch", SHIM, "numpy"),
        Part("torch", SHIM, "paddle"),
        Part("paddle", SHIM, "paddle"),
        Part("paddle", SHIM, "numpy"),
    ]
    assert made.absent == ("mindspore",)
    assert made.selection.present == ("numpy", "paddle")
    assert len(made.pages) == 5
    assert planned(kinds=["numpy", "mindspore"], frameworks=["torch"]).totals == {Part("torch", SHIM, "numpy"): 2}


@pytest.mark.frameworks
def test_with_the_framework_itself_examples_run_with_their_own_tensors_too():
    made = planned(kinds=["numpy"], frameworks=["torch"], reference=True)
    assert list(made.totals) == [
        Part("torch", SHIM, "torch"),
        Part("torch", SHIM, "numpy"),
        Part("torch", REFERENCE, ""),
    ]


def test_names_choose_among_examples_and_cases():
    made = planned(patterns=["x", "torch.distributed.all_to_all: complex"])
    assert made.totals == {Part("torch", SHIM, "torch"): 1, Part("paddle", SHIM, "paddle"): 1}
    assert [[case.name for case in page.cases] for page in made.pages] == [["complex"]]
    assert made.unknown == ()
    assert len(planned(patterns=["x", "nothing"]).unknown) == 1


def test_frameworks_are_not_read_for_cases_alone():
    made = make_plan(patterns=["torch.distributed.all_to_all: *"], read=None)
    assert made.totals == {}
    assert made.unknown == ()
    assert len(made.pages[0].cases) == 5


@pytest.mark.frameworks
def test_both_sides_are_counted():
    made = planned(frameworks=["torch"], reference=True, patterns=["x", "torch.distributed.all_to_all: complex"])
    assert [(source.framework, source.kind) for source in made.cases] == [("torch", CASE)]
    assert made.totals == {Part("torch", SHIM, "torch"): 1, Part("torch", REFERENCE, ""): 2}
    assert planned(frameworks=["torch"]).cases == ()


def test_cases_alone_are_planned_on_the_frameworks_themselves(monkeypatch):
    name = "torch.distributed.all_to_all: complex"
    sources = {
        "torch": replace(a_source_run([a_judgement(name), a_judgement(f"{name} parts")]).source, kind=CASE),
        "paddle": replace(a_source_run([a_judgement("paddle.distributed.x: y")], "paddle").source, kind=CASE),
    }
    monkeypatch.setattr(plan, "source_of_cases", lambda framework, pages: sources[framework])
    made = planned(reference=True, patterns=[name])
    assert (made.sources, made.cases) == ((), (sources["torch"],))
    assert made.totals == {Part("torch", REFERENCE, ""): 1}


def a_run(made, verdict=Verdict.PASS):
    source = made.sources[0]
    judgement = a_judgement("torch.distributed.x", verdict)
    return plan.SourceRun(source, SHIM, (judgement,), tensors=source.framework)


@pytest.mark.parametrize(
    ("frameworks", "verdict", "passed"),
    [(None, Verdict.PASS, True), (["torch", "mindspore"], Verdict.PASS, False), (None, Verdict.FAIL, False)],
)
def test_a_run_passes_when_nothing_failed_and_nothing_is_missing(frameworks, verdict, passed):
    made = planned(frameworks=frameworks)
    assert matrix_of(made, None, [a_run(made, verdict)], 1.0).passed is passed


def test_a_kind_of_tensor_that_was_asked_for_is_missing_also_where_no_case_is_chosen():
    made = planned(frameworks=["torch"], patterns=["x"], kinds=["torch", "mindspore"])
    assert made.pages == ()
    matrix = matrix_of(made, None, [a_run(made)], 1.0)
    assert (matrix.passed, matrix.absent, matrix.missing) == (False, ("mindspore",), ("mindspore",))


def test_a_run_of_nothing_does_not_pass():
    assert not matrix_of(planned(), None, [], 1.0).passed


def test_failed_cases_do_not_pass(monkeypatch):
    made = planned()
    cases = Run((), made.selection)
    monkeypatch.setattr(plan, "rows_of_cases", lambda pages, run, on_frameworks: [a_case_row()])
    assert not cases.passed
    assert not matrix_of(made, cases, [a_run(made)], 1.0).passed
