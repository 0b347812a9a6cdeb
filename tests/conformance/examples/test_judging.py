"""Verdicts on examples, by what is on record of them; and which examples go with other kinds of tensor."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources

import pytest

from shim.conformance.examples import suite
from shim.conformance.examples.example import Example, Step, Wanted
from shim.conformance.examples.judging import (
    NO_TENSOR,
    Judgement,
    Record,
    Verdict,
    judge,
    judge_kind,
    missing,
    read_records,
    refused_by_rule,
)
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.rank import Sight
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import SHIM, SIDES
from shim.conformance.kinds import KINDS
from shim.record.releases import version_of

FRAMEWORKS = ("torch", "paddle", "mindspore")
MOST_NOT_RUNNABLE = 0.05

(EXAMPLE,) = examples_in(">>> f()\n1\n", "torch", "torch.distributed.all_reduce", "a test")
TEXT = EXAMPLE.fingerprint


def outcome(*errors: str, example: Example = EXAMPLE) -> Outcome:
    return Outcome(example, tuple((rank, 1, error) for rank, error in enumerate(errors)), (), 0.1)


def verdict_on(seen: Outcome, record: Record | None) -> tuple[Verdict, str | None]:
    judgement = judge(seen, record)
    return judgement.verdict, judgement.change


@pytest.mark.frameworks
def test_what_is_as_recorded_keeps_its_verdict() -> None:
    assert verdict_on(outcome(), Record(TEXT, Verdict.PASS)) == (Verdict.PASS, None)
    wrong = Record(TEXT, Verdict.DOCUMENT_WRONG, "its ranks count from 1", "shown 2")
    judgement = judge(outcome("item 1: shown 2, seen 1"), wrong)
    assert (judgement.verdict, judgement.reason, judgement.change) == (Verdict.DOCUMENT_WRONG, wrong.reason, None)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("seen", "record", "change"),
    [
        (outcome("wrong"), Record(TEXT, Verdict.PASS), "fails, and the record says: pass"),
        (outcome(), Record(TEXT, Verdict.NOT_RUNNABLE, "a GPU", "no GPU"), "passes, and the record says: not runnable here"),
        (outcome("other"), Record(TEXT, Verdict.DOCUMENT_WRONG, "so", "shown 2"), "fails otherwise than by 'shown 2'"),
    ],
)  # fmt: skip
def test_what_is_not_as_recorded_fails(seen: Outcome, record: Record, change: str) -> None:
    verdict, told = verdict_on(seen, record)
    assert verdict is Verdict.FAIL
    assert str(told).startswith(change)


@pytest.mark.frameworks
def test_an_example_that_has_changed_or_is_new_is_noticed() -> None:
    assert verdict_on(outcome(), Record("0" * 12, Verdict.PASS)) == (Verdict.PASS, "the document has changed")
    assert verdict_on(outcome(), None) == (Verdict.PASS, "is not on record")
    assert verdict_on(outcome("wrong"), None) == (Verdict.FAIL, "is not on record")


@pytest.mark.frameworks
def test_an_example_that_is_not_run_is_noticed() -> None:
    records = {EXAMPLE.name: Record(TEXT, Verdict.PASS), "torch.gone": Record(TEXT, Verdict.PASS)}
    assert missing([Judgement(outcome(), Verdict.PASS)], records) == ["torch.gone"]


@pytest.mark.frameworks
def test_evidence_counts_on_any_rank() -> None:
    record = Record(TEXT, Verdict.DOCUMENT_WRONG, "so", "shown 2")
    assert judge(outcome("PeerLostError", "shown 2, seen 1"), record).verdict is Verdict.DOCUMENT_WRONG


@pytest.mark.frameworks
def test_an_empty_evidence_proves_nothing() -> None:
    record = Record(TEXT, Verdict.DOCUMENT_WRONG, "so", "")
    assert judge(outcome("anything"), record).verdict is Verdict.FAIL


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "framework",  # CI's run of all examples finds what has no record
    [pytest.param(name, marks=[] if name == "torch" else pytest.mark.nightly) for name in FRAMEWORKS],
)
def test_the_record_is_of_the_installed_examples(framework: str) -> None:
    records = read_records(framework, version_of(framework))
    assert {name: record.text for name, record in records.items()} == {
        example.name: example.fingerprint for example in installed_examples(framework)
    }


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_is_not_for_other_kinds_of_tensor_is_so_by_a_rule(framework: str) -> None:
    records = read_records(framework, version_of(framework))
    rules = {example.name: refused_by_rule(example) for example in installed_examples(framework)}
    others = set(KINDS) - {framework}
    for name, record in records.items():
        assert set(record.inapplicable) <= others, name
        if rules[name]:
            assert record.inapplicable == dict.fromkeys(others, rules[name]), name
        elif NO_TENSOR in record.inapplicable.values():
            assert record.inapplicable == dict.fromkeys(others, NO_TENSOR), name
        else:
            lacking = [f"{kind} has no " for kind in record.inapplicable]
            assert all(map(str.startswith, record.inapplicable.values(), lacking)), name


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_does_not_pass_has_its_reason_and_evidence(framework: str) -> None:
    records = read_records(framework, version_of(framework))
    known = (Verdict.PASS, Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE)
    assert [name for name, record in records.items() if record.verdict not in known] == []
    bare = [name for name, record in records.items() if record.verdict is not Verdict.PASS and not record.reason]
    assert bare == []
    unproven = [name for name, record in records.items() if record.verdict is not Verdict.PASS and not record.evidence]
    assert unproven == []


@pytest.mark.frameworks
def test_few_examples_are_not_runnable_here() -> None:
    records = [record for framework in FRAMEWORKS for record in read_records(framework, version_of(framework)).values()]
    idle = [record for record in records if record.verdict is Verdict.NOT_RUNNABLE]
    assert len(idle) <= MOST_NOT_RUNNABLE * len(records)


@pytest.mark.frameworks
def test_every_recorded_version_can_be_read() -> None:
    folder = resources.files("shim.conformance.examples") / "recorded"
    for file in folder.iterdir():
        framework, _, version = file.name.removesuffix(".json").partition("-")
        side = (
            "reference" if version.startswith("cases-") else "shim"
        )  # on the frontends, cases are judged without records
        assert len(read_records(framework, version, side)) == len(json.loads(file.read_text(encoding="utf-8")))


OF_TENSORS = Example("torch", "torch.distributed.x", 1, "x()", "a test", (Step("x()", 1, 0, Wanted({-1: "1"}, 1)),), 2)
FAILURES = ((0, 1, "item 1: shown 1, seen 2"),)
REFUSAL = "numpy has no bfloat16"
PASS, WRONG = Verdict.PASS, Verdict.DOCUMENT_WRONG
N_A = Verdict.NOT_APPLICABLE


def an_outcome(crossed=1, refusal="", failures=(), tensors="numpy"):
    sights = {0: Sight((), (), 0), 1: Sight((), (), crossed, refusal)}
    return Outcome(OF_TENSORS, failures, (), 0.1, sights, tensors=tensors, refusal=refusal)


def judged(outcome, verdict=PASS, inapplicable=None):
    record = Record(OF_TENSORS.fingerprint, verdict, "a reason", "shown 1", inapplicable=inapplicable or {})
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
    refusal = refused_by_rule(dataclasses.replace(OF_TENSORS, text=text, steps=(Step(text, 1, 0),)))
    assert refusal == "" if why is None else why in refusal


@pytest.mark.parametrize(("kind", "runs"), [("torch", 2), ("numpy", 1)])
def test_what_a_rule_refuses_is_told_and_not_run(monkeypatch, kind, runs):
    ran, begun, told = [], [], []
    compiled = dataclasses.replace(OF_TENSORS, text="torch.compile(f)")
    monkeypatch.setattr(suite, "run_examples", lambda examples, *rest: ran.extend(examples) or [])
    SIDES[SHIM].run([compiled, OF_TENSORS], told.append, begun.append, kind)
    assert len(ran) == runs
    assert ran[-1] is OF_TENSORS
    refused = [(each.example, each.tensors, each.passed) for each in told]
    assert refused == ([] if runs == 2 else [(compiled, "numpy", True)])
    assert begun == [outcome.example for outcome in told]
