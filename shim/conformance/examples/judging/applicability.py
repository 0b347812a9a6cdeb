"""Where an example says nothing about another kind of tensor than its own, and why: by these rules, or as it is seen when it runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging.verdicts import Judgement, Record, Verdict
from shim.conformance.examples.running.programs import is_program

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
