"""What the matrix keeps of judgements and of the cases' results."""

from __future__ import annotations

import dataclasses

import numpy as np
from made_up import TRACEBACK, a_judgement, a_matrix, a_source_run, an_example, an_outcome, source_runs

from shim.conformance.documents.pages import DOCUMENTS
from shim.conformance.examples.judging import Judgement, Verdict
from shim.conformance.examples.suite import REFERENCE, SHIM
from shim.conformance.kinds import Selection
from shim.conformance.matrix.cells import Column, Failure, Seen, engine_in_use
from shim.conformance.matrix.rows import failures_of, rows_of_cases, rows_of_examples
from shim.conformance.runner import Failure as CaseFailure
from shim.conformance.runner import Result, Run

OURS, THEIRS = Column(SHIM, "torch", engine_in_use()), Column(REFERENCE, "", "")


def test_both_sides_of_an_example_are_in_one_row():
    rows = rows_of_examples(source_runs()[:2])
    assert [row.name.rpartition(".")[2] for row in rows] == ["all_gather", "all_gather#2", "broadcast", "zeta"]
    assert [row.cells[OURS].verdict for row in rows] == [
        Verdict.PASS, Verdict.FAIL, Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE,
    ]  # fmt: skip
    assert [row.cells[THEIRS].verdict for row in rows] == [
        Verdict.PASS, Verdict.HANGS, Verdict.CRASHES, Verdict.UNSUPPORTED,
    ]  # fmt: skip
    assert rows[1].cells[OURS].change == "fails, and the record says: pass"
    assert rows[1].cells[THEIRS].reason == "it waits for ever"


def test_an_example_s_code_keeps_its_lines():
    [row] = rows_of_examples([a_source_run([a_judgement("torch.distributed.x")])])
    assert row.code == ((3, "import something"), (4, "x("), (5, "    tensor)"), (8, "tensor"))


def test_ranks_that_saw_the_same_are_together_and_others_apart():
    [row] = rows_of_examples([a_source_run([a_judgement("torch.distributed.x", ranks=3, shown="    [1, 2]")])])
    assert row.cells[OURS].seen == (
        Seen(4, (0, 1, 2), "[1, 2]", "[1, 2]"),
        Seen(8, (0,), "[0]", "[0]"),
        Seen(8, (1,), "[1]", "[1]"),
        Seen(8, (2,), None, "[2]"),  # the document says nothing of rank 2
    )


def test_a_difference_stands_beside_what_was_seen():
    judgement = a_judgement("torch.distributed.x", Verdict.FAIL, failures=[(1, 4, "item 1: shown 1, seen 2")])
    [row] = rows_of_examples([a_source_run([judgement])])
    assert row.cells[OURS].seen[1] == Seen(4, (1,), "[1, 2]", "[1, 2]", "item 1: shown 1, seen 2")
    assert row.cells[OURS].failures == (Failure((1,), 4, "item 1: shown 1, seen 2"),)


def test_what_is_to_be_raised_stands_with_what_is_shown():
    example = an_example("torch.distributed.x")
    steps = [dataclasses.replace(step, errors={0: "ValueError", 1: ""}) for step in example.steps[1:]]
    outcome = an_outcome(dataclasses.replace(example, steps=(dataclasses.replace(steps[0], wanted=None), steps[1])))
    [row] = rows_of_examples([a_source_run([Judgement(outcome, Verdict.PASS)])])
    shown = [(seen.line, seen.ranks, seen.shown) for seen in row.cells[OURS].seen]
    assert shown == [
        (4, (0,), "raises ValueError"),
        (4, (1,), "raises"),
        (8, (0,), "[0]\nraises ValueError"),
        (8, (1,), "[1]\nraises"),
    ]


def test_a_program_s_output_is_told_together():
    outcome = dataclasses.replace(an_outcome(an_example("torch.distributed.x")), sights={}, printed="1\n0\n")
    [row] = rows_of_examples([a_source_run([Judgement(outcome, Verdict.PASS)])])
    assert row.cells[OURS].seen == (Seen(4, (), "[1, 2]", "1\n0\n"), Seen(8, (), "[0]\n[1]", "1\n0\n"))


def test_failures_that_differ_by_the_rank_they_name_alone_are_one():
    traceback = "Traceback (most recent call last):\n  File {0}\nValueError: rank {0} of 12"
    told = [(rank, 4, traceback.format(rank)) for rank in (0, 1, 11)]
    assert failures_of([*told, (2, 4, "another"), (3, 5, "another")]) == (
        Failure((0, 1, 11), 4, traceback.format(0)),
        Failure((2,), 4, "another"),
        Failure((3,), 5, "another"),
    )


def test_a_failure_in_a_line_names_the_error():
    chained = "Traceback (most recent call last):\n  File\nKeyError: 1\n\nDuring it:\n\nTraceback (most recent call last):\n  File\nshim.errors.MismatchError: x\n  a table\nrank 0 printed:\n"
    assert Failure((0, 1), 3, chained).summary == "ranks 0, 1, line 3: shim.errors.MismatchError: x"
    assert Failure((1,), 0, "rank 1 died: killed by SIGSEGV\nrank 1 printed:\nmore").summary == (
        "rank 1: rank 1 died: killed by SIGSEGV"
    )
    assert Failure((0,), 2, "").summary == "rank 0, line 2: no more is known"
    assert Failure((0,), 3, TRACEBACK).summary.startswith("rank 0, line 3: ValueError: ")


def test_columns_are_in_order_and_all_cells_are_counted():
    matrix = a_matrix()
    assert [column.key for column in matrix.columns] == [
        "reference",
        "shim numpy shared_memory",
        "shim torch shared_memory",
        "shim paddle shared_memory",
    ]
    assert sum(matrix.counts.values()) == len(list(matrix.cells())) == 11
    assert matrix.counts[Verdict.PASS] == 4


def test_cases_have_a_cell_for_every_kind_and_what_was_seen():
    page, case = DOCUMENTS[0], DOCUMENTS[0].cases[0]
    seen = {rank: [np.array([rank])] for rank in range(case.ranks)}
    failure = CaseFailure(1, "documented", "[1]", "[2]", "tensor 1: 1 of 1 elements differ")
    results = [
        Result(case, "numpy", 0.1, (), seen),
        Result(case, "torch", 0.1, (failure,), seen),
    ]
    [row] = rows_of_cases([page], Run((case,), Selection(("numpy", "torch"), (), ()), results))
    assert (row.name, row.framework, row.ranks) == (f"{page.name}: {case.name}", "torch", case.ranks)
    assert row.code[0][1].startswith("def ")
    passed, failed = (row.cells[Column(SHIM, kind, engine_in_use())] for kind in ("numpy", "torch"))
    assert (passed.verdict, failed.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert [each.shown for each in passed.seen] == [
        "[0], [4], [8], [12]",
        "[1], [5], [9], [13]",
        "[2], [6], [10], [14]",
        "[3], [7], [11], [15]",
    ]
    assert [each.seen for each in passed.seen] == ["[0]", "[1]", "[2]", "[3]"]
    assert [each.difference for each in failed.seen] == [None, failure.details, None, None]
    assert failed.failures == (Failure((1,), 0, f"against the document: {failure.details}"),)


def test_notes_stand_with_their_case():
    page = next(page for page in DOCUMENTS if page.notes)
    case = next(case for case in page.cases if case.name == page.notes[0].case)
    result = Result(case, "numpy", 0.1)
    [row] = rows_of_cases([page], Run((case,), Selection(("numpy",), (), ()), [result]))
    assert page.notes[0].says in row.notes[0]
    assert page.notes[0].true in row.notes[0]
