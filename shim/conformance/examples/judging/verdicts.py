"""What became of each example, and what is on record about it.

``recorded/FRAMEWORK-VERSION.json`` maps the examples' names to what is expected of them: ``text``, the fingerprint of the example the
record was made for; ``verdict``, on the frontends; and where that is not ``pass``, the ``reason``, and ``evidence``: a part of the error or
difference by which a run shows that the reason is still true. ``reference`` has the same three of the real framework on a CPU; where that
ends in one way or another by chance, ``or`` has the three of each other way.
``inapplicable/`` has files of the same names: for each example that does not go with kinds of tensor, the reason by kind.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from shim.conformance.examples.running.runner import Outcome


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
    file = resources.files("shim.conformance.examples.judging") / folder / name
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
