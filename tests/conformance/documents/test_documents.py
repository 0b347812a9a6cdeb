"""The cases as data: complete, consistent, and right by the oracle before any engine has run."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from shim.conformance.assertions import assert_same_arrays
from shim.conformance.documents.pages import DOCUMENTS, case_named
from shim.conformance.kinds import KINDS, UNWRITTEN
from shim.core.collectives import COLLECTIVES

CASES = [(page, case) for page in DOCUMENTS for case in page.cases]
EVERY_CASE = pytest.mark.parametrize(("page", "case"), CASES, ids=[f"{page.name}:{case.name}" for page, case in CASES])
EVERY_DOCUMENT = pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)


def test_the_five_documents_are_there():
    assert [page.name for page in DOCUMENTS] == [
        "torch.distributed.all_to_all",
        "torch.distributed.all_gather_into_tensor",
        "paddle.distributed.alltoall_single",
        "mindspore.mint.distributed.all_gather_into_tensor",
        "mindspore.ops.AllGather",
    ]


@EVERY_DOCUMENT
def test_a_document_has_what_a_reader_needs(page):
    assert page.source.startswith("http")
    assert page.version
    assert page.notes
    names = [case.name for case in page.cases]
    assert len(set(names)) == len(names)
    assert any(case.documented is not None for case in page.cases)


@EVERY_DOCUMENT
def test_the_function_is_in_the_document_s_frontend(page):
    assert hasattr(importlib.import_module(page.frontend), page.name.rpartition(".")[2])


@EVERY_DOCUMENT
def test_every_note_names_a_case_that_checks_it(page):
    for note in page.notes:
        assert case_named(page.name, note.case) in page.cases


@EVERY_CASE
def test_a_case_names_its_collective_and_kinds(page, case):
    assert case.collective in {row.name for row in COLLECTIVES}
    assert set(case.kinds) <= set(KINDS)
    assert case_named(page.name, case.name) is case


@EVERY_CASE
def test_documented_values_are_the_oracle_s(page, case):
    computed = case.oracle([case.inputs(rank) for rank in range(case.ranks)])
    assert len(computed) == case.ranks
    if case.documented is not None:
        assert len(case.documented) == case.ranks
        for rank in range(case.ranks):
            assert_same_arrays(computed[rank], case.documented[rank])


@EVERY_CASE
def test_inputs_are_made_anew_for_every_call(page, case):
    for first, second in zip(case.inputs(0), case.inputs(0), strict=True):
        assert not np.shares_memory(first, second)


@EVERY_CASE
def test_an_unwritten_output_cannot_pass(page, case):
    if case.documented is not None:
        for arrays in case.documented:
            assert all(not np.any(array == UNWRITTEN) for array in arrays)
