"""Runs examples on rank processes, as many as each says, and judges what every rank saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shim.conformance.examples.example import Example
from shim.conformance.runner import QUIET
from shim.launch.pool import Outcome as Answer
from shim.launch.pool import RankPool

__all__ = ["PRELOADED", "Outcome", "outcome_of", "run_examples"]

# What the processes import whose copies run the examples of a framework.
PRELOADED = {
    "torch": ("torch", "torch.distributed"),
    "paddle": ("paddle", "paddle.distributed"),
    "mindspore": ("mindspore", "mindspore.ops", "mindspore.mint.distributed"),
}
_DEADLINE = 30.0  # seconds for one example; most take milliseconds, the first of a pool imports the framework


@dataclass(frozen=True)
class Outcome:
    """How one example went, in ``seconds``: ``failures`` by rank, each with the line, what was seen and what is wrong."""

    example: Example
    failures: tuple[tuple[int, int, str], ...]
    changes: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.failures


def run_examples(
    examples: Sequence[Example], on_outcome: Callable[[Outcome], None] = lambda outcome: None, substituted: bool = True
) -> list[Outcome]:
    """Run *examples*; tell *on_outcome* of each as it ends. One pool for each framework and number of ranks imports it once."""
    outcomes = []
    for framework, ranks in sorted({(example.framework, example.ranks) for example in examples}):
        with RankPool(ranks, environment=QUIET, preload=PRELOADED[framework]) as pool:
            for example in examples:
                if (example.framework, example.ranks) == (framework, ranks):
                    outcomes.append(_run(pool, example, substituted))
                    on_outcome(outcomes[-1])
    return outcomes


def _run(pool: RankPool, example: Example, substituted: bool) -> Outcome:
    begin = time.perf_counter()
    answers = pool.run("shim.conformance.examples.rank:see_on_this_rank", example, substituted, deadline=_DEADLINE)
    return outcome_of(example, answers, time.perf_counter() - begin)


def outcome_of(example: Example, answers: Sequence[Answer], seconds: float) -> Outcome:
    """Return what became of *example*, given what each rank answered: a ``Sight``, or an error."""
    failures: list[tuple[int, int, str]] = []
    changes: list[str] = []
    for answer in answers:
        if answer.error is not None:
            failures.append((answer.rank, 0, answer.error))
            continue
        changes += answer.value.changes
        failure = answer.value.failure
        if failure is not None:
            failures.append((answer.rank, failure.line, failure.error or failure.difference or ""))
    return Outcome(example, tuple(failures), tuple(dict.fromkeys(changes)), seconds)
