"""What a terminal shows: counts, reasons, failures, changes, progress."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from made_up import a_judgement, a_matrix, a_matrix_of_kinds, a_source_run, an_example
from rich.console import Console

from shim.conformance.documents.pages import DOCUMENTS
from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import CASE, REFERENCE, SHIM, Part
from shim.conformance.kinds import Selection
from shim.conformance.matrix.cells import Matrix
from shim.conformance.matrix.rows import rows_of_cases, rows_of_examples, subject_of
from shim.conformance.matrix.terminal import counts_table, print_matrix
from shim.conformance.progress import ProgressTable
from shim.conformance.runner import Result, Run


def printed(matrix, every=False, width=160):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_matrix(matrix, console, every)
    return console.file.getvalue()


def a_run(*judgements, **rest):
    run = a_source_run(judgements, **rest)
    return Matrix(tuple(rows_of_examples([run])), (subject_of(run),), run.passed, 1.0)


def test_counts_of_both_sides_stand_one_below_the_other():
    lines = [line.replace("│", " ").split() for line in printed(a_matrix()).splitlines()]
    assert ["torch", "1.2.3", "shim", "4", "4", "1", "1", "1", "1", "0", "0", "0"] in lines
    assert ["torch", "1.2.3", "itself", "4", "4", "1", "0", "0", "0", "1", "1", "1"] in lines


@pytest.mark.parametrize("width", [120, 80, 60])
@pytest.mark.parametrize("matrix", [a_matrix(), a_matrix_of_kinds()], ids=["both sides", "kinds"])
def test_a_narrow_terminal_shows_the_same_counts_in_whole_words(matrix, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(counts_table(matrix.subjects, console))
    text = console.file.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for subject in matrix.subjects:
        for word in (
            *subject.title.split(),
            *subject.on.split(),
            *(name for each in subject.counts for name in each.value.split()),
        ):
            assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)


def test_a_terminal_without_room_for_columns_has_a_line_for_each_count():
    console = Console(file=io.StringIO(), width=60)
    console.print(counts_table(a_matrix_of_kinds().subjects, console))
    rows = [" ".join(re.findall(r"[\w.,]+", row)) for row in console.file.getvalue().split("├")]
    assert rows[2] == "torch 1.2.3 2 of 3 1 pass shim, paddle 1 fail 1 not applicable"


def test_a_narrow_terminal_shows_the_whole_names_of_examples():
    text = printed(a_matrix_of_kinds(), every=True, width=60)
    assert "torch.distributed.b (2 ranks)\n  shim, numpy, shared_memory: not applicable\n" in text
    assert "  shim, paddle, shared_memory: fail\n" in text


def test_each_reason_and_failure_is_told_with_its_place():
    text = printed(a_matrix(missing=["mindspore"]))
    assert "torch.distributed.zeta: it needs two nodes" in text
    assert "torch.distributed.zeta (framework itself): gloo has none" in text
    assert "torch.distributed.broadcast: it shows </script>" in text
    assert "failed: torch.distributed.all_gather#2\n  ranks 0, 1, line 3: ValueError: " in text
    assert "raise ValueError" in text  # one failure is told in full
    assert "torch.distributed.all_gather#2 fails, and the record says: pass" in text
    assert "torch.distributed.gone: on record for shim, not run" in text
    assert "mindspore: asked for and not installed" in text
    assert "torch 1.2.3: no verdicts are on record of itself" in text
    assert "[bold]" in text  # markup in an example is printed as it is
    assert "6 examples, 11 verdicts" in text
    assert text.rstrip().endswith("not passed.")


def test_a_reason_that_holds_on_both_sides_is_told_once():
    wrong = a_judgement("torch.distributed.x", Verdict.DOCUMENT_WRONG, "it is wrong", failures=[(0, 4, "x")])
    runs = [a_source_run([wrong]), a_source_run([wrong], side=REFERENCE)]
    text = printed(Matrix(tuple(rows_of_examples(runs)), tuple(map(subject_of, runs)), True, 1.0))
    assert text.count("it is wrong") == 1
    assert "torch.distributed.x (both): it is wrong" in text


def test_kinds_of_tensor_are_counted_and_told_apart():
    text = printed(a_matrix_of_kinds(), every=True)
    lines = [line.replace("│", " ").split() for line in text.splitlines()]
    assert ["torch", "1.2.3", "shim", "3", "3", "2", "1", "0", "0", "0"] in lines
    assert ["torch", "1.2.3", "shim,", "numpy", "3", "1", "0", "1", "0", "0", "2"] in lines
    assert ["torch", "1.2.3", "shim,", "paddle", "3", "2", "1", "0", "0", "1", "1"] in lines
    assert text.count("shared_memory") == 3 + 2
    assert "torch.distributed.c (shim with numpy, torch): it is wrong" in text
    assert "2 examples with numpy tensors: numpy has no bfloat16" in text
    assert "1 example with paddle tensors: no tensor goes there" in text
    assert "failed: torch.distributed.b (shim, paddle, shared_memory)" in text
    assert "torch.distributed.b (shim, paddle, shared_memory) fails, and the record says: pass" in text


def test_of_many_failures_each_has_a_line():
    text = printed(
        a_run(
            *(
                a_judgement(
                    f"torch.distributed.f{i}",
                    Verdict.FAIL,
                    failures=[(0, 3, "Traceback (most recent call last):\n  a frame\nKeyError: 1")],
                )
                for i in range(5)
            )
        )
    )
    assert text.count("KeyError: 1") == 5
    assert "a frame" not in text
    assert "running few with --example" in text


def test_each_example_on_demand():
    assert "│ torch.distributed.all_gather#2" in printed(a_matrix(), every=True)
    assert "│ torch.distributed.all_gather#2" not in printed(a_matrix())


def test_a_run_in_which_all_is_well_says_so():
    text = printed(a_run(a_judgement("torch.distributed.x")))
    assert "1 example, 1 verdict, 1 pass, in 1.0 s: passed." in text
    assert "Not as recorded" not in text
    assert "failed" not in text


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_a_live_table_or_a_line(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)
    judgements = [a_judgement("torch.distributed.x"), a_judgement("torch.distributed.y", Verdict.FAIL)]
    ours, theirs = Part("torch", SHIM, "torch"), Part("torch", REFERENCE, "")
    with ProgressTable({ours: 2, theirs: 1}, console) as progress:
        for judgement in judgements:
            progress.begin(judgement.outcome.example)
            progress.count(ours, judgement)
        picture = Console(file=io.StringIO(), width=120)
        picture.print(progress._picture())
        progress.begin(an_example("torch.distributed.z", ranks=1))
        progress.count(theirs, a_judgement("torch.distributed.z", Verdict.HANGS))
        picture.print(progress._picture())
    text = console.file.getvalue()
    assert ("torch: 2 examples run" in text) == (not terminal)
    assert ("torch itself: 1 example run" in text) == (not terminal)
    first, second = picture.file.getvalue().split("framework")[1:]
    assert "torch.distributed.y (2 ranks)" in first
    assert "torch.distributed.z (1 rank)" in second
    rows = [line.split() for line in second.splitlines()]
    assert ["torch", "2", "of", "2", "1", "1"] in rows
    assert ["torch", "itself", "1", "of", "1", "1"] in rows
    assert "hangs" in second
    assert "hangs" not in first


def test_progress_in_a_narrow_terminal_shows_the_counts_in_words():
    part, console = Part("torch", SHIM, "numpy"), Console(file=io.StringIO(), force_terminal=True, width=60)
    with ProgressTable({part: 2}, console) as progress:
        progress.count(part, a_judgement("torch.distributed.x", Verdict.UNSUPPORTED, "no kernel"))
        picture = Console(file=io.StringIO(), width=60)
        picture.print(progress._picture())
    assert "torch, numpy tensors 1 of 2 1 unsupported on this backend" in " ".join(picture.file.getvalue().split())


def test_progress_shows_the_name_of_a_file_as_it_is():
    part = Part("torch", SHIM, "torch")
    with ProgressTable({part: 1}, Console(file=io.StringIO(), force_terminal=True)) as progress:
        progress.begin(an_example("[/id].md"))
        picture = Console(file=io.StringIO(), width=120)
        picture.print(progress._picture())
    assert "[/id].md (2 ranks)" in picture.file.getvalue()


def test_a_reason_of_many_examples_is_told_once_with_their_names():
    judgements = [a_judgement(f"torch.distributed.f{i}", Verdict.UNSUPPORTED, "gloo has none") for i in range(5)]
    text = printed(a_run(*judgements, side=REFERENCE))
    assert "5 examples: gloo has none\n  torch.distributed.f0, torch.distributed.f1" in text
    text = printed(a_run(*judgements[:2], side=REFERENCE))
    assert "torch.distributed.f0 (framework itself), torch.distributed.f1 (framework itself): gloo has none" in text


def test_what_the_framework_itself_is_known_to_show_otherwise_is_a_reason_and_no_failure():
    known = a_judgement("torch.distributed.x", Verdict.FAIL, "gloo leaves partial sums", failures=[(1, 4, "differs")])
    text = printed(a_run(known, side=REFERENCE))
    assert "torch.distributed.x (framework itself): gloo leaves partial sums" in text
    assert "failed:" not in text
    new = a_judgement("torch.distributed.x", Verdict.FAIL, "differs", "is not on record", [(1, 4, "differs")])
    assert "failed: torch.distributed.x (framework itself)" in printed(a_run(new, side=REFERENCE))


def test_cases_on_the_framework_itself_have_counts_and_reasons_of_their_own():
    page, case = DOCUMENTS[0], DOCUMENTS[0].cases[0]
    run = a_source_run([a_judgement(case.title, Verdict.UNSUPPORTED, "gloo has none", ranks=4)], side=REFERENCE)
    run = replace(run, source=replace(run.source, kind=CASE))
    rows = rows_of_cases([page], Run((case,), Selection(("torch",), (), ()), [Result(case, "torch", 0.1)]), [run])
    assert {column.key: cell.verdict for column, cell in rows[0].cells.items()} == {
        "shim torch shared_memory": Verdict.PASS,
        "reference": Verdict.UNSUPPORTED,
    }
    text = printed(Matrix(tuple(rows), (subject_of(run),), True, 1.0))
    assert "torch 1.2.3, cases" in text
    assert f"{case.title} (framework itself): gloo has none" in text
