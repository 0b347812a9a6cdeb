"""What is on record of the examples, and that a change of anything is noticed."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging import (
    NO_TENSOR,
    Judgement,
    Record,
    Verdict,
    judge,
    missing,
    read_records,
    refused_by_rule,
)
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.kinds import KINDS
from shim.substitution.mirrors import version_of

pytestmark = pytest.mark.frameworks

FRAMEWORKS = ("torch", "paddle", "mindspore")
MOST_NOT_RUNNABLE = 0.05

(EXAMPLE,) = examples_in(">>> f()\n1\n", "torch", "torch.distributed.all_reduce", "a test")
TEXT = EXAMPLE.fingerprint


def outcome(*errors: str, example: Example = EXAMPLE) -> Outcome:
    return Outcome(example, tuple((rank, 1, error) for rank, error in enumerate(errors)), (), 0.1)


def verdict_on(seen: Outcome, record: Record | None) -> tuple[Verdict, str | None]:
    judgement = judge(seen, record)
    return judgement.verdict, judgement.change


def test_what_is_as_recorded_keeps_its_verdict() -> None:
    assert verdict_on(outcome(), Record(TEXT, Verdict.PASS)) == (Verdict.PASS, None)
    wrong = Record(TEXT, Verdict.DOCUMENT_WRONG, "its ranks count from 1", "shown 2")
    judgement = judge(outcome("item 1: shown 2, seen 1"), wrong)
    assert (judgement.verdict, judgement.reason, judgement.change) == (Verdict.DOCUMENT_WRONG, wrong.reason, None)


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


def test_an_example_that_has_changed_or_is_new_is_noticed() -> None:
    assert verdict_on(outcome(), Record("0" * 12, Verdict.PASS)) == (Verdict.PASS, "the document has changed")
    assert verdict_on(outcome(), None) == (Verdict.PASS, "is not on record")
    assert verdict_on(outcome("wrong"), None) == (Verdict.FAIL, "is not on record")


def test_an_example_that_is_not_run_is_noticed() -> None:
    records = {EXAMPLE.name: Record(TEXT, Verdict.PASS), "torch.gone": Record(TEXT, Verdict.PASS)}
    assert missing([Judgement(outcome(), Verdict.PASS)], records) == ["torch.gone"]


def test_evidence_counts_on_any_rank() -> None:
    record = Record(TEXT, Verdict.DOCUMENT_WRONG, "so", "shown 2")
    assert judge(outcome("PeerLostError", "shown 2, seen 1"), record).verdict is Verdict.DOCUMENT_WRONG


def test_an_empty_evidence_proves_nothing() -> None:
    record = Record(TEXT, Verdict.DOCUMENT_WRONG, "so", "")
    assert judge(outcome("anything"), record).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    "framework",  # CI's run of all examples finds what has no record
    [pytest.param(name, marks=[] if name == "torch" else pytest.mark.nightly) for name in FRAMEWORKS],
)
def test_the_record_is_of_the_installed_examples(framework: str) -> None:
    records = read_records(framework, version_of(framework))
    assert {name: record.text for name, record in records.items()} == {
        example.name: example.fingerprint for example in installed_examples(framework)
    }


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


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_does_not_pass_has_its_reason_and_evidence(framework: str) -> None:
    records = read_records(framework, version_of(framework))
    known = (Verdict.PASS, Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE)
    assert [name for name, record in records.items() if record.verdict not in known] == []
    bare = [name for name, record in records.items() if record.verdict is not Verdict.PASS and not record.reason]
    assert bare == []
    unproven = [name for name, record in records.items() if record.verdict is not Verdict.PASS and not record.evidence]
    assert unproven == []


def test_few_examples_are_not_runnable_here() -> None:
    records = [record for framework in FRAMEWORKS for record in read_records(framework, version_of(framework)).values()]
    idle = [record for record in records if record.verdict is Verdict.NOT_RUNNABLE]
    assert len(idle) <= MOST_NOT_RUNNABLE * len(records)


def test_every_recorded_version_can_be_read() -> None:
    folder = resources.files("shim.conformance.examples") / "recorded"
    for file in folder.iterdir():
        framework, _, version = file.name.removesuffix(".json").partition("-")
        side = (
            "reference" if version.startswith("cases-") else "shim"
        )  # on the frontends, cases are judged without records
        assert len(read_records(framework, version, side)) == len(json.loads(file.read_text(encoding="utf-8")))
