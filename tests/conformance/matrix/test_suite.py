"""Running the examples of a source on a side, and whether the run passed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made_up import TRACEBACK, a_judgement, a_source_run, an_example, an_outcome

from shim.conformance import recording
from shim.conformance.examples import suite
from shim.conformance.examples.judging import Record, Verdict
from shim.conformance.examples.suite import REFERENCE, SHIM, SIDES, Side, Source, run_source

EXAMPLES = (an_example("torch.distributed.a"), an_example("torch.distributed.b"), an_example("torch.distributed.b#2"))
FAILURES = ((0, 4, "item 1: shown 1, seen 2"),)


def recorded(**verdicts):
    """Return a source of all examples, on record with *verdicts*, by the last part of their names; ``b2`` is ``b#2``."""
    names = {example.name.rpartition(".")[2].replace("#", ""): example for example in EXAMPLES}
    records = {
        example.name: Record(example.fingerprint, verdicts.get(name, Verdict.PASS), "a reason", "shown 1")
        for name, example in names.items()
    }
    return Source("torch", "1.2.3", EXAMPLES, {SHIM: records, REFERENCE: records})


def sides(failing=()):
    """Return both sides, which run nothing: examples named in *failing* fail, the others pass."""

    def run(examples, on_outcome, on_begin, tensors):
        for example in examples:
            on_begin(example)
            on_outcome(an_outcome(example, FAILURES if example.name.rpartition(".")[2] in failing else ()))
        return []

    return {name: Side(run, side.judge) for name, side in SIDES.items()}


def test_all_are_run_judged_and_told_of():
    begun, judged = [], []
    run = run_source(recorded(), on_begin=begun.append, on_judgement=judged.append, sides=sides())
    assert begun == list(EXAMPLES)
    assert tuple(judged) == run.judgements
    assert [judgement.outcome.example for judgement in judged] == begun
    assert run.counts == {Verdict.PASS: 3}
    assert run.passed


def test_the_record_s_reason_is_told():
    run = run_source(recorded(a=Verdict.DOCUMENT_WRONG), sides=sides(["a"]))
    assert (run.judgements[0].verdict, run.judgements[0].reason) == (Verdict.DOCUMENT_WRONG, "a reason")
    assert run.passed


@pytest.mark.parametrize(("source", "failing"), [(recorded(), ["b"]), (recorded(b=Verdict.NOT_RUNNABLE), [])])
def test_another_verdict_than_recorded_does_not_pass(source, failing):
    run = run_source(source, sides=sides(failing))
    assert [judgement.outcome.example.name for judgement in run.changed] == ["torch.distributed.b"]
    assert not run.passed


def test_a_new_example_does_not_pass_where_there_is_a_record():
    source = recorded()
    del source.records[SHIM]["torch.distributed.b#2"]
    run = run_source(source, sides=sides())
    assert [judgement.change for judgement in run.judgements] == [None, None, "is not on record"]
    assert not run.passed


def test_an_example_that_is_gone_does_not_pass():
    source = recorded()
    run = run_source(Source("torch", "1.2.3", EXAMPLES[:2], source.records), sides=sides())
    assert run.unseen == ("torch.distributed.b#2",)
    assert not run.passed


def test_what_was_not_chosen_is_neither_run_nor_missed():
    run = run_source(recorded(), patterns=["torch.distributed.b"], sides=sides())
    assert [judgement.outcome.example for judgement in run.judgements] == list(EXAMPLES[1:])
    assert run.unseen == ()
    assert run.passed


def test_without_a_record_only_failures_do_not_pass():
    source = Source("torch", "9", EXAMPLES)
    assert run_source(source, sides=sides()).passed
    run = run_source(source, sides=sides(["a"]))
    assert [judgement.change for judgement in run.judgements] == [None] * 3
    assert not run.passed


def test_the_framework_itself_is_compared_with_ours_and_its_failures_are_not_ours():
    ours = run_source(recorded(a=Verdict.DOCUMENT_WRONG), sides=sides(["a"]))
    source = Source("torch", "1.2.3", EXAMPLES, {SHIM: recorded().records[SHIM]})
    theirs = run_source(source, REFERENCE, ours=ours, sides=sides(["a", "b"]))
    assert [judgement.verdict for judgement in theirs.judgements] == [
        Verdict.DOCUMENT_WRONG,
        Verdict.FAIL,
        Verdict.PASS,
    ]
    assert theirs.passed


def test_a_recorded_verdict_of_the_framework_itself_holds():
    theirs = run_source(recorded(), REFERENCE, sides=sides(["b"]))
    assert [judgement.change for judgement in theirs.judgements] == [None, "fail, and the record says: pass", None]
    assert not theirs.passed


def test_what_is_on_record_as_not_applicable_is_told_and_not_run():
    source, ran = recorded(), []
    for name, record in list(source.records[SHIM].items()):
        source.records[SHIM][name] = replace(record, inapplicable={"numpy": "no tensor goes there"})
    changed = EXAMPLES[2].name
    source.records[SHIM][changed] = replace(source.records[SHIM][changed], text="another")

    def run(examples, on_outcome, on_begin, tensors):
        ran.append((tensors, [example.name for example in examples]))
        return []

    found = run_source(source, sides={SHIM: Side(run, SIDES[SHIM].judge)}, tensors="numpy")
    assert ran == [("numpy", [changed])]
    assert [(each.verdict, each.reason, each.change) for each in found.judgements] == [
        (Verdict.NOT_APPLICABLE, "no tensor goes there", None)
    ] * 2
    assert found.unseen == (changed,)
    run_source(source, sides={SHIM: Side(run, SIDES[SHIM].judge)}, tensors="torch")
    assert len(ran[1][1]) == 3


def test_the_record_of_what_is_not_applicable_is_made_of_runs_that_do_not_know_it(monkeypatch, tmp_path):
    source, ran = recorded(), []
    source.records[SHIM][EXAMPLES[0].name] = replace(
        source.records[SHIM][EXAMPLES[0].name], inapplicable={"numpy": "x"}
    )

    def run_source(source, side, *, tensors):
        ran.append((tensors, {record.inapplicable.get(tensors) for record in source.records[side].values()}))
        judgements = [
            a_judgement("torch.distributed.a"),
            a_judgement("torch.distributed.b", Verdict.NOT_APPLICABLE, "why"),
        ]
        return a_source_run(judgements, tensors=tensors)

    monkeypatch.setattr(recording, "installed_source", lambda framework: source)
    monkeypatch.setattr(recording, "run_source", run_source)
    (tmp_path / "inapplicable").mkdir()
    monkeypatch.setattr(recording, "FOLDER", tmp_path)
    recording.record_kinds("torch")
    assert ran == [(kind, {None}) for kind in ("numpy", "paddle", "mindspore")]
    assert json.loads((tmp_path / "inapplicable" / "torch-1.2.3.json").read_text()) == {
        "torch.distributed.b": {"numpy": "why", "paddle": "why", "mindspore": "why"}
    }


def test_the_installed_source_is_read_with_its_records_on_this_machine():
    source = suite.installed_source("torch")
    assert len(source.examples) > 20
    assert all(example.framework == "torch" for example in source.examples)
    assert source.is_recorded(SHIM)
    assert {example.name for example in source.examples} == set(source.records[SHIM])


def test_made_up_runs_are_as_real_ones():
    run = a_source_run([a_judgement("torch.distributed.a", Verdict.FAIL, failures=[(0, 3, TRACEBACK)])])
    assert not run.passed
    assert a_source_run([a_judgement("torch.distributed.a")]).passed
