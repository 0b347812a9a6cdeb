"""The five documents' cases on the frameworks themselves."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from types import FunctionType, ModuleType

import pytest

from shim.conformance.assertions import assert_is_none
from shim.conformance.documents import pages
from shim.conformance.documents.pages import CASE_SIDES, DOCUMENTS, on_the_framework, source_of_cases
from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import REFERENCE, run_source


@pytest.mark.parametrize("framework", ["torch", "paddle", "mindspore"])
@pytest.mark.frameworks
def test_the_cases_for_the_installed_version_are_run(framework):
    names = [example.name for example in source_of_cases(framework, DOCUMENTS).examples]
    if framework == "paddle":
        function = "paddle.distributed.alltoall_single"
        assert names == [f"{function}: equal parts, Paddle 3", f"{function}: split sizes, Paddle 3"]
    else:
        assert names == [case.title for page in DOCUMENTS if page.name.startswith(framework) for case in page.cases]


def test_a_case_reaches_its_frontend_through_modules_which_can_be_replaced():
    for page in DOCUMENTS:
        names = page.cases[0].call.__globals__
        frontends = [each for each in names.values() if isinstance(each, ModuleType) and "frontends" in each.__name__]
        assert frontends
        taken_out = [
            name
            for name, each in names.items()
            if isinstance(each, FunctionType | type) and each.__module__.startswith("shim.frontends")
        ]
        assert taken_out == []


def test_a_frontend_s_modules_are_replaced_by_those_that_they_stand_for(monkeypatch):
    real = ModuleType("paddle.distributed")
    monkeypatch.setitem(sys.modules, "paddle", ModuleType("paddle"))
    monkeypatch.setitem(sys.modules, "paddle.distributed", real)
    monkeypatch.setattr(pages, "frontends_of_installed", lambda: {"paddle": "shim.frontends.paddle_3"})
    mine = importlib.import_module("shim.frontends.paddle_3.distributed")
    other = importlib.import_module("shim.frontends.paddle_2.distributed")
    names = {"dist": mine, "dist_2": other, "sys": sys, "size": 2}
    on_the_framework(names, "paddle")
    assert names == {"dist": real, "dist_2": other, "sys": sys, "size": 2}


def test_a_case_s_own_comparison_is_told_from_an_error_of_the_framework():
    with pytest.raises(AssertionError) as ours:
        assert_is_none(1)
    with pytest.raises(AssertionError) as theirs:
        assert not sys.path
    assert pages._is_ours(ours.value)
    assert not pages._is_ours(theirs.value)


@pytest.mark.frameworks
def test_gloo_takes_one_of_the_two_forms_that_torch_documents():
    (page,) = [page for page in DOCUMENTS if page.name.endswith("all_gather_into_tensor") and page.name[0] == "t"]
    cases = tuple(case for case in page.cases if case.name in ("stacked", "concatenated"))
    source = source_of_cases("torch", [replace(page, cases=cases)])
    run = run_source(source, REFERENCE, patterns=["all_gather_into_tensor"], sides=CASE_SIDES)
    stacked, concatenated = run.judgements
    assert (stacked.verdict, concatenated.verdict) == (Verdict.UNSUPPORTED, Verdict.PASS)
    assert all("invalid tensor size at index 0 (expected (2), got (1, 2))" in text for _, _, text in stacked.outcome.failures)  # fmt: skip
    assert {rank for rank, _, _ in stacked.outcome.failures} == {0, 1, 2, 3}
    (step,) = concatenated.outcome.sights[3].steps
    assert step.outputs == ("[0., 0., 1., 1., 2., 2., 3., 3.]",)
