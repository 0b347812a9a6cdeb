"""The two sides that examples are run on: the frontends, called ``shim``, and the framework itself, called ``reference``.

On the frontends, an example is run with one kind of tensor or another: its own, or one that its tensors become on their way there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from shim.conformance.examples.example import Example
from shim.conformance.examples.judging.applicability import judge_kind, refused_by_rule
from shim.conformance.examples.judging.reference_verdicts import judge_reference
from shim.conformance.examples.judging.verdicts import Judgement, Record, judge
from shim.conformance.examples.running.reference import run_reference
from shim.conformance.examples.running.runner import Outcome, run_examples

SHIM, REFERENCE = "shim", "reference"


class Part(NamedTuple):
    """Where examples of *framework* are run: on *side*, with *tensors* of a kind (empty on the framework itself)."""

    framework: str
    side: str
    tensors: str

    @property
    def title(self) -> str:
        if self.side == REFERENCE:
            return f"{self.framework} itself"
        return self.framework if self.tensors == self.framework else f"{self.framework}, {self.tensors} tensors"


class Runner(Protocol):
    """Runs examples of one framework with *tensors* of a kind, and tells of each as it ends and as it begins."""

    def __call__(
        self,
        examples: Sequence[Example],
        on_outcome: Callable[[Outcome], None],
        *,
        on_begin: Callable[[Example], None],
        tensors: str,
    ) -> Sequence[Outcome]: ...


class Judge(Protocol):
    """Judges an outcome by its record, and by the judgement on ``ours``, the frontends, where these were run before."""

    def __call__(self, outcome: Outcome, record: Record | None, ours: Judgement | None) -> Judgement: ...


class Side(NamedTuple):
    run: Runner
    judge: Judge


def _run_ours(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None],
    *,
    on_begin: Callable[[Example], None],
    tensors: str,
) -> Sequence[Outcome]:
    refusals = [refused_by_rule(each) if each.framework != tensors else "" for each in examples]
    refused = [
        Outcome(each, (), (), 0.0, tensors=tensors, refusal=why)
        for each, why in zip(examples, refusals, strict=True)
        if why
    ]
    for outcome in refused:
        on_begin(outcome.example)
        on_outcome(outcome)
    others = [each for each, why in zip(examples, refusals, strict=True) if not why]
    return [*refused, *run_examples(others, on_outcome, on_begin, tensors)]


def _run_theirs(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None],
    *,
    on_begin: Callable[[Example], None],
    tensors: str,
) -> Sequence[Outcome]:
    return run_reference(examples, on_outcome, on_begin)


def _judge_ours(outcome: Outcome, record: Record | None, ours: Judgement | None) -> Judgement:
    return judge_kind(judge(outcome, record), record)


SIDES: Mapping[str, Side] = {SHIM: Side(_run_ours, _judge_ours), REFERENCE: Side(_run_theirs, judge_reference)}
