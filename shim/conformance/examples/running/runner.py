"""Runs examples on rank processes, as many as each says, and judges what every rank saw."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import indent

from shim.conformance.examples.adapting import in_its_own_place
from shim.conformance.examples.example import Example
from shim.conformance.examples.running.programs import is_program, run_program, unprinted
from shim.conformance.examples.running.rank import Sight, StepSight
from shim.conformance.kinds import QUIET, is_installed
from shim.launch.original import Original
from shim.launch.pool import Outcome as Answer
from shim.launch.pool import RankPool

# What the processes import whose copies run the examples of a framework.
_OURS = ("shim.conformance.examples.running.rank", "shim.conformance.examples.running.reference")
PRELOADED = {
    "torch": ("torch", "torch.distributed", *_OURS),
    "paddle": ("paddle", "paddle.distributed", *_OURS),
    "mindspore": ("mindspore", "mindspore.ops", "mindspore.mint.distributed", *_OURS),
}
_DEADLINE = 30.0  # seconds for one example; most take milliseconds
_PATIENCE = 120.0  # seconds for a program, whose processes import the framework anew


@dataclass(frozen=True)
class Outcome:
    """How one example went, in ``seconds``: ``failures`` are (rank, line, what is wrong).

    ``sights`` has what the ranks saw, without those that died or were late; ``printed`` is what a program printed
    that started the ranks itself, None for other examples. ``tensors`` is the kind of tensor that the frontends got, empty where
    that was the example's own; ``refusal`` says why they could not get it.
    """

    example: Example
    failures: tuple[tuple[int, int, str], ...]
    changes: tuple[str, ...]
    seconds: float
    sights: Mapping[int, Sight] = field(default_factory=dict)
    printed: str | None = None
    tensors: str = ""
    refusal: str = ""

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def unread(self) -> frozenset[int]:
        """The lines of the comments that were not compared: what may be a remark, and what is of a program's variables, which nobody sees."""
        if is_program(self.example):
            wanted = (step.wanted for step in self.example.steps)
            return frozenset(each.line for each in wanted if each is not None and not each.is_printed)
        return frozenset(step.unread for sight in self.sights.values() for step in sight.steps if step.unread)

    @property
    def claims(self) -> bool:
        """Tell whether the document says anything that the run has compared, besides that the example ends well."""
        unread = self.unread
        steps = [
            replace(step, wanted=None) if step.wanted is not None and step.wanted.line in unread else step
            for step in self.example.steps
        ]
        return replace(self.example, steps=tuple(steps)).claims

    @property
    def crossed(self) -> int:
        """How many tensors became one of the kind ``tensors``."""
        return sum(sight.crossed for sight in self.sights.values())


def run_examples(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
    on_begin: Callable[[Example], None] = lambda example: None,
    tensors: str | None = None,
) -> list[Outcome]:
    """Run *examples* on the frontends; tell *on_begin* of each as it begins, *on_outcome* as it ends.

    The frontends get tensors of the kind *tensors*, None for those that each example makes.
    """
    run = partial(run_in_pool, tensors=tensors)
    return run_in_pools(examples, run, True, on_outcome, on_begin, () if tensors is None else (tensors,))


def run_in_pools(
    examples: Sequence[Example],
    run: Callable[[RankPool, Example], Outcome],
    substituted: bool,
    on_outcome: Callable[[Outcome], None],
    on_begin: Callable[[Example], None],
    besides: Sequence[str] = (),
) -> list[Outcome]:
    """Have *run* run each example on copies of a process that has imported its framework and *besides*, and finds these as after the import.

    Those that are programs run by themselves, on the frontends when *substituted*. What ranks that are killed leave in their folder
    for temporary files goes with that process.
    """
    outcomes = []

    def take(example: Example, run_it: Callable[[Example], Outcome]) -> None:
        on_begin(example)
        with in_its_own_place(example) as (placed, reasons):
            outcome = run_it(placed)
        outcomes.append(replace(outcome, example=example, changes=(*reasons, *outcome.changes)))
        on_outcome(outcomes[-1])

    others = [example for example in examples if not is_program(example)]
    for framework in dict.fromkeys(example.framework for example in others):
        with (
            tempfile.TemporaryDirectory(prefix="shim-examples-", ignore_cleanup_errors=True) as folder,
            Original(_modules(framework, besides), {**QUIET, "TMPDIR": folder}) as original,
        ):
            original.start()  # so that no example's seconds have the import in them
            for example in others:
                if example.framework == framework:
                    take(example, partial(_in_copies, original, run))
    for example in examples:
        if is_program(example):
            take(example, partial(_run_by_itself, substituted=substituted))
    return outcomes


def _in_copies(original: Original, run: Callable[[RankPool, Example], Outcome], example: Example) -> Outcome:
    with RankPool(example.ranks, original=original) as pool:
        return run(pool, example)


def _modules(framework: str, besides: Sequence[str]) -> list[str]:
    """Return what the processes for examples of *framework* import, of what is installed: MindSpore goes first, as it cannot follow Paddle."""
    modules = [name for name in (*PRELOADED[framework], *besides) if is_installed(name.partition(".")[0])]
    return sorted(dict.fromkeys(modules), key=lambda module: not module.startswith("mindspore"))


def _run_by_itself(example: Example, substituted: bool) -> Outcome:
    """Run *example*, a program that starts its ranks, in a process of its own."""
    begin = time.perf_counter()
    seen = run_program(example, substituted, _PATIENCE)
    seconds = time.perf_counter() - begin
    failures = tuple((0, line, text) for line, text in seen.failures)
    return Outcome(example, failures, tuple(seen.changed), seconds, printed=seen.printed)


def run_in_pool(pool: RankPool, example: Example, tensors: str | None = None) -> Outcome:
    """Run *example* on the ranks of *pool*, on the frontends, which get tensors of the kind *tensors*, None for those that it makes."""
    begin = time.perf_counter()
    kind = tensors or example.framework
    answers = pool.run("shim.conformance.examples.running.rank:see_on_this_rank", example, kind, deadline=_DEADLINE)
    outcome = outcome_of(example, answers, time.perf_counter() - begin)
    if kind == example.framework:
        return outcome
    refusals = [sight.refusal for _, sight in sorted(outcome.sights.items()) if sight.refusal]
    return replace(outcome, tensors=kind, refusal=next(iter(refusals), ""))


def outcome_of(example: Example, answers: Sequence[Answer], seconds: float) -> Outcome:
    """Return what became of *example*, given what each rank answered: a ``Sight``, or an error."""
    failures: list[tuple[int, int, str]] = []
    changes: list[str] = []
    sights: dict[int, Sight] = {}
    for answer in answers:
        if answer.error is not None:
            failures.append((answer.rank, 0, answer.error))
            continue
        sights[answer.rank] = answer.value
        changes += answer.value.changes
        for failed in answer.value.failures:
            failures.append((answer.rank, failed.line, failed.error or failed.difference or ""))
    steps = [sight.steps for sight in sights.values()]
    failures += [*unseen_steps(steps), *_unraised(example, steps)]
    failures += _unprinted_output(example, sights)
    return Outcome(example, tuple(failures), tuple(dict.fromkeys(changes)), seconds, sights)


def _unprinted_output(example: Example, sights: Mapping[int, Sight]) -> list[tuple[int, int, str]]:
    """Return a failure for each line of the output that the document shows of the whole and no rank prints; the last has both texts."""
    printed = [line for _, sight in sorted(sights.items()) for line in sight.printed.splitlines()]
    last = example.steps[-1].line
    missing = [text for _, text in unprinted([(last, example.output)], printed)]
    if missing:
        seen = indent("\n".join(printed) or "nothing", "  ")
        missing[-1] += f"\nshown:\n{indent(example.output, '  ')}\nprinted:\n{seen}"
    return [(0, last, text) for text in missing]


def _unraised(example: Example, sights: Sequence[Sequence[StepSight]]) -> list[tuple[int, int, str]]:
    """Return a failure for each step that is documented to raise and that all ranks got through."""
    raised = {step.line for steps in sights for step in steps if step.raised}
    through = {step.line for steps in sights for step in steps} - raised
    return [
        (0, step.line, "documented to raise, and raised on no rank")
        for step in example.steps
        if step.raises and step.line in through
    ]


def unseen_steps(sights: Sequence[Sequence[StepSight]]) -> list[tuple[int, int, str]]:
    """Return a failure for each step that the document shows something after, and that all ranks were silent at."""
    by_line: dict[int, list[bool]] = {}
    for steps in sights:
        for step in steps:
            by_line.setdefault(step.line, []).append(step.silent)
    return [(0, line, "shown, and seen on no rank") for line, silent in by_line.items() if all(silent)]
