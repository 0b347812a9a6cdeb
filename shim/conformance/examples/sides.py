"""The two sides that examples are run on: the frontends, called ``shim``, and the framework itself, called ``reference``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from shim.conformance.examples.example import Example
from shim.conformance.examples.reference import run_reference
from shim.conformance.examples.reference_verdicts import judge_reference
from shim.conformance.examples.runner import Outcome, run_examples
from shim.conformance.examples.verdicts import Judgement, Record, judge

__all__ = ["REFERENCE", "SHIM", "SIDES", "Judge", "Runner", "Side"]

SHIM, REFERENCE = "shim", "reference"


class Runner(Protocol):
    """Runs examples of one framework, and tells of each as it ends and as it begins."""

    def __call__(
        self,
        examples: Sequence[Example],
        on_outcome: Callable[[Outcome], None],
        *,
        on_begin: Callable[[Example], None],
    ) -> Sequence[Outcome]: ...


class Judge(Protocol):
    """Judges an outcome by its record, and by the judgement on ``ours``, the frontends, where these were run before."""

    def __call__(self, outcome: Outcome, record: Record | None, ours: Judgement | None) -> Judgement: ...


class Side(NamedTuple):
    run: Runner
    judge: Judge


def _judge_ours(outcome: Outcome, record: Record | None, ours: Judgement | None) -> Judgement:
    return judge(outcome, record)


SIDES: Mapping[str, Side] = {SHIM: Side(run_examples, _judge_ours), REFERENCE: Side(run_reference, judge_reference)}
