"""Which examples are not applicable to another kind of tensor, and that this has to be on record."""

from __future__ import annotations

import dataclasses

import pytest

from shim.conformance.examples import suite
from shim.conformance.examples.example import Example, Step, Wanted
from shim.conformance.examples.judging import NO_TENSOR, Record, Verdict, judge, judge_kind, refused_by_rule
from shim.conformance.examples.running.rank import Sight
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import SHIM, SIDES

EXAMPLE = Example("torch", "torch.distributed.x", 1, "x()", "a test", (Step("x()", 1, 0, Wanted({-1: "1"}, 1)),), 2)
FAILURES = ((0, 1, "item 1: shown 1, seen 2"),)
REFUSAL = "numpy has no bfloat16"
PASS, WRONG = Verdict.PASS, Verdict.DOCUMENT_WRONG
N_A = Verdict.NOT_APPLICABLE


def an_outcome(crossed=1, refusal="", failures=(), tensors="numpy"):
    sights = {0: Sight((), (), 0), 1: Sight((), (), crossed, refusal)}
    return Outcome(EXAMPLE, failures, (), 0.1, sights, tensors=tensors, refusal=refusal)


def judged(outcome, verdict=PASS, inapplicable=None):
    record = Record(EXAMPLE.fingerprint, verdict, "a reason", "shown 1", inapplicable=inapplicable or {})
    judgement = judge_kind(judge(outcome, record), record)
    return judgement.verdict, judgement.reason, judgement.change


@pytest.mark.parametrize(
    ("outcome", "verdict", "inapplicable", "expected"),
    [
        (an_outcome(), PASS, None, (PASS, "", None)),
        (an_outcome(failures=FAILURES), PASS, None, (Verdict.FAIL, "", "fails, and the record says: pass")),
        (an_outcome(failures=FAILURES), WRONG, None, (WRONG, "a reason", None)),
        (an_outcome(), WRONG, None, (Verdict.FAIL, "", "passes, and the record says: document wrong")),
        (an_outcome(0), PASS, {"numpy": NO_TENSOR}, (N_A, NO_TENSOR, None)),
        (an_outcome(0), PASS, None, (N_A, NO_TENSOR, "is not applicable, and the record says: it is")),
        (an_outcome(0), PASS, {"paddle": NO_TENSOR}, (N_A, NO_TENSOR, "is not applicable, and the record says: it is")),
        (an_outcome(0, failures=FAILURES), PASS, {"numpy": NO_TENSOR}, (Verdict.FAIL, "", f"fail, and the record says that it is not applicable: {NO_TENSOR}")),
        (an_outcome(0, failures=FAILURES), WRONG, {"numpy": NO_TENSOR}, (N_A, NO_TENSOR, None)),
        (an_outcome(0, REFUSAL, FAILURES), PASS, {"numpy": REFUSAL}, (N_A, REFUSAL, None)),
        (an_outcome(0, REFUSAL, FAILURES), PASS, {"numpy": NO_TENSOR}, (N_A, REFUSAL, f"is not applicable, and the record says: {NO_TENSOR}")),
        (an_outcome(), PASS, {"numpy": REFUSAL}, (PASS, "", f"pass, and the record says that it is not applicable: {REFUSAL}")),
        (an_outcome(0, tensors=""), PASS, {"numpy": NO_TENSOR}, (PASS, "", None)),
    ],
)  # fmt: skip
def test_what_is_not_applicable_is_so_for_the_reason_on_record(outcome, verdict, inapplicable, expected):
    assert judged(outcome, verdict, inapplicable) == expected


def test_a_document_that_has_changed_is_a_change_whatever_else():
    record = Record("another", PASS, inapplicable={"numpy": NO_TENSOR})
    judgement = judge_kind(judge(an_outcome(0), record), record)
    assert (judgement.verdict, judgement.change) == (N_A, "the document has changed")
    judgement = judge_kind(judge(an_outcome(), record), record)
    assert (judgement.verdict, judgement.change) == (PASS, "the document has changed")


def test_without_a_record_nothing_is_wrong_with_what_goes_well():
    assert judge_kind(judge(an_outcome(), None), None).verdict is PASS
    assert judge_kind(judge(an_outcome(0), None), None).verdict is N_A
    assert judge_kind(judge(an_outcome(0, failures=FAILURES), None), None).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import torch.multiprocessing as mp\nif __name__ == '__main__':\n    mp.spawn(f)", "starts its ranks itself"),
        ("f = torch.compile(g)", "torch compiles it"),
        ("ms.set_context(mode=ms.GRAPH_MODE)\nclass Net(nn.Cell): ...", "MindSpore compiles it"),
        ("ms.set_context(mode=ms.GRAPH_MODE)", None),
        ("class Net(nn.Cell): ...", None),
        ("re.compile(x)", None),
    ],
)
def test_rules_say_what_is_not_run_and_why(text, why):
    refusal = refused_by_rule(dataclasses.replace(EXAMPLE, text=text, steps=(Step(text, 1, 0),)))
    assert refusal == "" if why is None else why in refusal


@pytest.mark.parametrize(("kind", "runs"), [("torch", 2), ("numpy", 1)])
def test_what_a_rule_refuses_is_told_and_not_run(monkeypatch, kind, runs):
    ran, begun, told = [], [], []
    compiled = dataclasses.replace(EXAMPLE, text="torch.compile(f)")
    monkeypatch.setattr(suite, "run_examples", lambda examples, *rest: ran.extend(examples) or [])
    SIDES[SHIM].run([compiled, EXAMPLE], told.append, begun.append, kind)
    assert len(ran) == runs
    assert ran[-1] is EXAMPLE
    refused = [(each.example, each.tensors, each.passed) for each in told]
    assert refused == ([] if runs == 2 else [(compiled, "numpy", True)])
    assert begun == [outcome.example for outcome in told]
