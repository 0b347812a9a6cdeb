"""From what became of an example to a verdict on it, by what is on record: on the frontends, and on the framework itself.

``recorded/FRAMEWORK-VERSION.json`` maps the examples' names to what is expected of them: ``text``, the fingerprint of the example the
record was made for; ``verdict``, on the frontends; and where that is not ``pass``, the ``reason``, and ``evidence``: a part of the error or
difference by which a run shows that the reason is still true. ``reference`` has the same three of the real framework on a CPU; where that
ends in one way or another by chance, ``or`` has the three of each other way.
``inapplicable/`` has files of the same names: for each example that does not go with kinds of tensor, the reason by kind; the rules by which
one does not stand here.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from shim.conformance.examples.example import Example
from shim.conformance.examples.running.programs import is_program
from shim.conformance.examples.running.runner import Outcome

FOLDER = Path(__file__).parent  # of the records


class Verdict(enum.Enum):
    """How an example went: ``RAN`` where it ended well and its document claims nothing else. ``NOT_APPLICABLE`` is for other kinds of tensor than the example's own, the last three for the real frameworks."""

    PASS = "pass"
    RAN = "ran, nothing claimed"
    FAIL = "fail"
    DOCUMENT_WRONG = "document wrong"
    NOT_RUNNABLE = "not runnable here"
    NOT_APPLICABLE = "not applicable"
    UNSUPPORTED = "unsupported on this backend"
    CRASHES = "crashes"
    HANGS = "hangs"


@dataclass(frozen=True)
class Record:
    """What is expected of an example, on one side; or, by chance, one of ``otherwise``.

    ``inapplicable`` has a reason for each kind of tensor that it does not go with.
    """

    text: str
    verdict: Verdict
    reason: str = ""
    evidence: str = ""
    otherwise: tuple[Record, ...] = ()
    inapplicable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """The verdict on an outcome, with its reason; ``change`` says how it is not what the record says, None where it is."""

    outcome: Outcome
    verdict: Verdict
    reason: str = ""
    change: str | None = None


def read_records(framework: str, version: str, side: str = "shim") -> Mapping[str, Record]:
    """Return the records of *framework* at *version* by example, empty where there are none; *side* is ``shim`` or ``reference``."""
    rows = _rows_of("recorded", f"{framework}-{version}.json")
    inapplicable = _rows_of("inapplicable", f"{framework}-{version}.json") if side == "shim" else {}
    sides = {
        name: row if side == "shim" else row["reference"] for name, row in rows.items() if side == "shim" or side in row
    }
    return {name: _record(rows[name]["text"], row, inapplicable.get(name, {})) for name, row in sides.items()}


def _record(text: str, row: Mapping[str, Any], inapplicable: Mapping[str, str]) -> Record:
    otherwise = tuple(_record(text, each, inapplicable) for each in row.get("or", ()))
    verdict = Verdict(row["verdict"])
    return Record(text, verdict, row.get("reason", ""), row.get("evidence", ""), otherwise, inapplicable)


def _rows_of(folder: str, name: str) -> dict[str, Any]:
    file = FOLDER / folder / name
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def verdict_of_end(outcome: Outcome) -> Verdict:
    """Return the verdict of a run of which nothing is on record."""
    if not outcome.passed:
        return Verdict.FAIL
    return Verdict.PASS if outcome.claims else Verdict.RAN


def judge(outcome: Outcome, record: Record | None) -> Judgement:
    """Judge *outcome* by its *record*. What differs from the record, or has none and does not pass, is a failure.

    A record says ``pass`` of what ends well, whether its text claims more than that or not.
    """
    if record is None:
        return Judgement(outcome, verdict_of_end(outcome), change="is not on record")
    if record.text != outcome.example.fingerprint:
        return Judgement(outcome, verdict_of_end(outcome), change="the document has changed")
    if outcome.passed:
        if record.verdict is Verdict.PASS:
            return Judgement(outcome, verdict_of_end(outcome))
        return Judgement(outcome, Verdict.FAIL, change=f"passes, and the record says: {record.verdict.value}")
    if record.verdict is Verdict.PASS:
        return Judgement(outcome, Verdict.FAIL, change="fails, and the record says: pass")
    if not record.evidence or not any(record.evidence in text for _, _, text in outcome.failures):
        return Judgement(
            outcome, Verdict.FAIL, change=f"fails otherwise than by {record.evidence!r}, as the record says"
        )
    return Judgement(outcome, record.verdict, record.reason)


def missing(judgements: Sequence[Judgement], records: Mapping[str, Record]) -> list[str]:
    """Return the examples that are on record and were not run."""
    seen = {judgement.outcome.example.name for judgement in judgements}
    return [name for name in records if name not in seen]


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


NO_TENSOR = "no tensor goes to the frontend in it"
_GRAPH = ("GRAPH_MODE", "nn.Cell")
_COMPILE = re.compile(r"\btorch\.compile\b")


class Rule(NamedTuple):
    """An example that ``holds`` is true of is not run with other kinds of tensor; ``why`` is told."""

    why: str
    holds: Callable[[Example], bool]


RULES = (
    Rule("it starts its ranks itself, in processes of its own", is_program),
    Rule("torch compiles it, with what the frontend does", lambda example: bool(_COMPILE.search(example.text))),
    Rule(
        "MindSpore compiles it as a graph, with what the frontend does",
        lambda example: all(map(example.text.__contains__, _GRAPH)),
    ),
)


def refused_by_rule(example: Example) -> str:
    """Return why *example* is not to be run with another kind of tensor, empty where it is."""
    return next((rule.why for rule in RULES if rule.holds(example)), "")


def judge_kind(judgement: Judgement, record: Record | None) -> Judgement:
    """Return *judgement*, made by *record*, or, of an example with another kind of tensor, that it is not applicable.

    It is not where a tensor has no counterpart, and where all went as the record says and no tensor was there to become another kind's.
    That it is not has to be on record too, with the reason; so nothing that stops being converted goes by unnoticed.
    """
    outcome = judgement.outcome
    if not outcome.tensors:
        return judgement
    is_known = record is not None and record.text == outcome.example.fingerprint
    recorded = record.inapplicable.get(outcome.tensors, "") if record is not None and is_known else ""
    reason = outcome.refusal
    if not reason and not outcome.crossed and (outcome.passed or judgement.change is None):
        reason = NO_TENSOR
    if reason:
        change = f"is not applicable, and the record says: {recorded or 'it is'}" if reason != recorded else None
        return Judgement(outcome, Verdict.NOT_APPLICABLE, reason, change if is_known else judgement.change)
    if recorded:
        change = f"{judgement.verdict.value}, and the record says that it is not applicable: {recorded}"
        return replace(judgement, change=change)
    return judgement
