"""How the frameworks themselves did: by how their examples ended, and by what is on record of that."""

from __future__ import annotations

from dataclasses import replace

from shim.conformance.examples.judging.verdicts import Judgement, Record, Verdict, verdict_of_end
from shim.conformance.examples.running.runner import Outcome

_BY_A_PERSON = frozenset({Verdict.DOCUMENT_WRONG, Verdict.NOT_RUNNABLE, Verdict.UNSUPPORTED, Verdict.FAIL})
_DIED = (" died: ", "was killed by ")  # one of the pool's ranks, and a program that starts its ranks itself
_WELL = frozenset({Verdict.PASS, Verdict.RAN})
_HUNG = ("had not answered", "had not ended")


def judge_reference(outcome: Outcome, record: Record | None, ours: Judgement | None) -> Judgement:
    """Judge *outcome* by its *record*, or where it has none, by how it ended and by the verdict on *ours*.

    The verdict of what is not as recorded is that of the run.
    """
    seen = verdict_of_run(outcome)
    if record is None:
        agrees = ours is not None and ours.verdict not in _WELL and seen.verdict in _BY_A_PERSON
        alike = replace(seen, verdict=ours.verdict, reason=ours.reason) if ours is not None and agrees else seen
        return replace(alike, change="is not on record")
    if record.text != outcome.example.fingerprint:
        return replace(seen, change="the document has changed")
    fitting = next((each for each in (record, *record.otherwise) if _fits(seen, each)), None)
    if fitting is not None:
        return seen if seen.verdict in _WELL else replace(seen, verdict=fitting.verdict, reason=fitting.reason)
    expected = " or ".join(each.verdict.value for each in (record, *record.otherwise))
    evidence = f" by {record.evidence!r}" if not _WELL & {record.verdict, seen.verdict} else ""
    return replace(seen, change=f"{seen.verdict.value}, and the record says: {expected}{evidence}")


def _fits(seen: Judgement, record: Record) -> bool:
    """Tell whether the run ended as *record* says, and gave its evidence; whose fault an error is, only a person can say."""
    if seen.verdict in _WELL or record.verdict is Verdict.PASS:
        return seen.verdict in _WELL and record.verdict is Verdict.PASS
    alike = {seen.verdict, record.verdict} <= _BY_A_PERSON or seen.verdict is record.verdict
    return alike and bool(record.evidence) and any(record.evidence in text for _, _, text in seen.outcome.failures)


def verdict_of_run(outcome: Outcome) -> Judgement:
    """Say how the example ended: well, in a crash, not at all, with an error, or showing something else."""
    if outcome.passed:
        return Judgement(outcome, verdict_of_end(outcome))
    texts = [text.strip() for _, _, text in outcome.failures]
    for verdict, signs in ((Verdict.CRASHES, _DIED), (Verdict.HANGS, _HUNG)):
        ended = [text for text in texts if any(sign in text.splitlines()[0] for sign in signs)]
        if ended:
            return Judgement(outcome, verdict, ended[0].splitlines()[0])
    error = next((text for text in texts if "Traceback" in text), None)
    if error is not None:
        return Judgement(outcome, Verdict.UNSUPPORTED, error.splitlines()[-1])
    return Judgement(outcome, Verdict.FAIL, texts[0].splitlines()[0])
