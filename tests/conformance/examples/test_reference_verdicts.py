"""How the frameworks themselves did, and that a change of it is noticed."""

from __future__ import annotations

import pytest

from shim.conformance.documents.pages import DOCUMENTS, source_of_cases
from shim.conformance.examples.judging import Judgement, Record, Verdict, judge_reference, read_records, verdict_of_run
from shim.conformance.examples.reading.reader import examples_in
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import REFERENCE
from shim.conformance.recording import reference_row
from shim.record.releases import version_of

FRAMEWORKS = ("torch", "paddle", "mindspore")
(EXAMPLE,) = examples_in(">>> f()\n1\n", "torch", "torch.distributed.all_reduce", "a test")
TEXT = EXAMPLE.fingerprint
ERROR = "Traceback (most recent call last):\n  a frame\nRuntimeError: gloo has no such thing"
CRASH = "rank 1 died: killed by SIGSEGV\nrank 0 printed:\nTraceback (most recent call last):"
KILLED = "was killed by SIGABRT\nTraceback (most recent call last):"
LATE = "rank 1 had not answered after 90 s\nrank 1 printed:\nRuntimeError"
SHOWN = "item 1: shown 1, seen 2"


def outcome(*errors):
    return Outcome(EXAMPLE, tuple((rank, 1, error) for rank, error in enumerate(errors)), (), 0.1)


@pytest.mark.parametrize(
    ("errors", "verdict", "reason"),
    [
        ((), Verdict.PASS, ""),
        ((ERROR,), Verdict.UNSUPPORTED, "RuntimeError: gloo has no such thing"),
        ((SHOWN,), Verdict.FAIL, SHOWN),
        ((SHOWN, ERROR), Verdict.UNSUPPORTED, "RuntimeError: gloo has no such thing"),
        ((ERROR, LATE), Verdict.HANGS, "rank 1 had not answered after 90 s"),
        ((LATE, CRASH), Verdict.CRASHES, "rank 1 died: killed by SIGSEGV"),
        ((KILLED,), Verdict.CRASHES, "was killed by SIGABRT"),
    ],
)
def test_a_run_is_judged_by_how_it_ended(errors, verdict, reason):
    judgement = verdict_of_run(outcome(*errors))
    assert (judgement.verdict, judgement.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("errors", "record"),
    [
        ((), Record(TEXT, Verdict.PASS)),
        ((ERROR,), Record(TEXT, Verdict.UNSUPPORTED, "why", "no such thing")),
        ((ERROR,), Record(TEXT, Verdict.DOCUMENT_WRONG, "why", "no such thing")),
        ((SHOWN,), Record(TEXT, Verdict.NOT_RUNNABLE, "why", "shown 1")),
        ((CRASH,), Record(TEXT, Verdict.CRASHES, "why", "SIGSEGV")),
    ],
)
def test_what_is_as_recorded_has_the_verdict_and_reason_on_record(errors, record):
    judgement = judge_reference(outcome(*errors), record, None)
    assert (judgement.verdict, judgement.reason, judgement.change) == (record.verdict, record.reason, None)


@pytest.mark.parametrize(
    ("errors", "record", "change"),
    [
        ((ERROR,), Record(TEXT, Verdict.PASS), "unsupported on this backend, and the record says: pass"),
        ((), Record(TEXT, Verdict.UNSUPPORTED, "why", "no"), "pass, and the record says: unsupported on this backend"),
        ((ERROR,), Record(TEXT, Verdict.UNSUPPORTED, "why", "other"), "unsupported on this backend, and the record says: "
         "unsupported on this backend by 'other'"),
        ((ERROR,), Record(TEXT, Verdict.UNSUPPORTED, "why", ""), "unsupported on this backend, and the record says"),
        ((LATE,), Record(TEXT, Verdict.CRASHES, "why", "rank 1"), "hangs, and the record says: crashes"),
        ((CRASH,), Record(TEXT, Verdict.DOCUMENT_WRONG, "why", "SIGSEGV"), "crashes, and the record says: document wrong"),
        ((), Record("0" * 12, Verdict.PASS), "the document has changed"),
        ((), None, "is not on record"),
    ],
)  # fmt: skip
def test_a_change_is_noticed_and_the_verdict_is_the_run_s(errors, record, change):
    judgement = judge_reference(outcome(*errors), record, None)
    assert judgement.change.startswith(change)
    assert judgement.verdict is verdict_of_run(outcome(*errors)).verdict


@pytest.mark.parametrize(("errors", "reason"), [((CRASH,), "by chance"), ((LATE,), "at times"), ((), "")])
def test_one_of_several_ways_of_ending_may_be_on_record(errors, reason):
    others = (Record(TEXT, Verdict.HANGS, "at times", "had not answered"), Record(TEXT, Verdict.PASS))
    judgement = judge_reference(outcome(*errors), Record(TEXT, Verdict.CRASHES, "by chance", "died", others), None)
    assert (judgement.reason, judgement.change) == (reason, None)


def test_without_a_record_what_is_not_the_framework_s_fault_is_as_on_the_frontends():
    ours = Judgement(outcome(ERROR), Verdict.DOCUMENT_WRONG, "it is wrong")
    assert judge_reference(outcome(SHOWN), None, ours).reason == "it is wrong"
    assert judge_reference(outcome(CRASH), None, ours).verdict is Verdict.CRASHES
    assert judge_reference(outcome(), None, ours).verdict is Verdict.PASS
    assert judge_reference(outcome(ERROR), None, Judgement(outcome(), Verdict.PASS)).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.frameworks
def test_every_example_and_case_is_on_record_of_the_framework_itself(framework):
    version = version_of(framework)
    of_examples = read_records(framework, version, REFERENCE)
    assert {name: record.text for name, record in of_examples.items()} == {
        name: record.text for name, record in read_records(framework, version).items()
    }
    cases = source_of_cases(framework, DOCUMENTS)
    assert {name: record.text for name, record in cases.records[REFERENCE].items()} == {
        example.name: example.fingerprint for example in cases.examples
    }
    records = {**of_examples, **cases.records[REFERENCE]}
    ways = [(name, way) for name, record in records.items() for way in (record, *record.otherwise)]
    assert [name for name, way in ways if way.verdict is not Verdict.PASS and not (way.reason and way.evidence)] == []


@pytest.mark.parametrize(
    ("framework", "name", "told"),
    [
        ("torch", "torch.distributed.all_gather_single", "all_gather_into_tensor"),
        ("torch-cases", "torch.distributed.all_gather_into_tensor: stacked", "all_gather_into_tensor"),
        ("paddle", "paddle.distributed.alltoall_single", "alltoall_single"),
        ("mindspore", "mindspore.mint.distributed.init_process_group", "mint"),
    ],
)
@pytest.mark.frameworks
def test_the_known_breaks_are_on_record(framework, name, told):
    record = read_records(framework, version_of(framework.partition("-")[0]), REFERENCE)[name]
    assert record.verdict is Verdict.UNSUPPORTED
    assert told in record.reason


@pytest.mark.frameworks
def test_a_record_has_each_way_in_which_an_example_ends_by_chance():
    record = read_records("paddle", version_of("paddle"), REFERENCE)["paddle.distributed.new_group"]
    assert [way.verdict for way in record.otherwise] == [Verdict.HANGS, Verdict.PASS]
    assert {way.text for way in record.otherwise} == {record.text}


def test_a_new_record_is_the_run_s_verdict_or_what_is_known_of_the_same_error():
    known = {"another": Record("0" * 12, Verdict.DOCUMENT_WRONG, "why", "no such thing")}
    new = judge_reference(outcome(ERROR), None, None)
    assert reference_row(new, {}, {}) == {
        "verdict": "unsupported on this backend",
        "reason": "",
        "evidence": "RuntimeError: gloo has no such thing",
    }
    assert reference_row(new, {}, known) == {"verdict": "document wrong", "reason": "why", "evidence": "no such thing"}
    assert reference_row(judge_reference(outcome(), None, None), {}, known) == {"verdict": "pass"}
    kept = {"reference": {"verdict": "unsupported on this backend", "reason": "mine", "evidence": "gloo"}}
    as_recorded = judge_reference(outcome(ERROR), Record(TEXT, Verdict.UNSUPPORTED, "mine", "gloo"), None)
    assert reference_row(as_recorded, kept, known) == kept["reference"]
