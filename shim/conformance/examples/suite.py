"""Runs all examples of a source on one of two sides, and judges them by what is on record.

The sides are the frontends, called ``shim``, and the framework itself, called ``reference``. On the frontends, an example is run with one kind of
tensor or another: its own, or one that its tensors become on their way there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from shim.conformance.examples.adapting import needed_frameworks
from shim.conformance.examples.example import Example, is_chosen
from shim.conformance.examples.judging import (
    Judgement,
    Record,
    Verdict,
    judge,
    judge_kind,
    judge_reference,
    missing,
    read_records,
    refused_by_rule,
)
from shim.conformance.examples.reading.docstrings import installed_examples
from shim.conformance.examples.reading.files import examples_in_files
from shim.conformance.examples.running.reference import run_reference
from shim.conformance.examples.running.runner import Outcome, run_examples
from shim.record.releases import version_of

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


# Runs examples of one framework with tensors of a kind, and tells of each as it ends and as it begins.
Runner = Callable[[Sequence[Example], Callable[[Outcome], None], Callable[[Example], None], str], Sequence[Outcome]]
# Judges an outcome by its record, and by the judgement on the frontends, where these were run before.
Judge = Callable[[Outcome, Record | None, Judgement | None], Judgement]


class Side(NamedTuple):
    run: Runner
    judge: Judge


def _run_ours(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None],
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
    on_begin: Callable[[Example], None],
    tensors: str,
) -> Sequence[Outcome]:
    return run_reference(examples, on_outcome, on_begin)


def _judge_ours(outcome: Outcome, record: Record | None, ours: Judgement | None) -> Judgement:
    return judge_kind(judge(outcome, record), record)


SIDES: Mapping[str, Side] = {SHIM: Side(_run_ours, _judge_ours), REFERENCE: Side(_run_theirs, judge_reference)}


DOCSTRING, CASE, FILE = "docstring", "case", "file"  # where examples stand; a case is one of our five documents
NOT_INSTALLED = "(not installed)"  # a source's version, where its examples use the frontend alone
_MOST_RANKS = 16  # that are started for what a text says


@dataclass(frozen=True)
class Source:
    """Where examples were found: in an installed framework's docstrings, or in files (``kind``), which run with it.

    ``records`` has, by side, what is expected of each example by its name; it is empty for a version that has not been recorded.
    """

    framework: str
    version: str
    examples: tuple[Example, ...]
    records: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)
    kind: str = DOCSTRING

    def is_recorded(self, side: str) -> bool:
        return bool(self.records.get(side))

    def refusal(self, example: Example, kind: str) -> str:
        """Return why *example* is on record not to go with tensors of *kind*, empty where it is not, or its text is another by now."""
        record = self.records.get(SHIM, {}).get(example.name)
        return record.inapplicable.get(kind, "") if record is not None and record.text == example.fingerprint else ""


def too_many_ranks(example: Example) -> str:
    """Return why *example* is not started, empty where it is: a text that speaks of many ranks speaks of another machine."""
    if example.is_case or example.ranks <= _MOST_RANKS:
        return ""
    return f"it speaks of {example.ranks} ranks, and no more than {_MOST_RANKS} are started for what a text says"


@dataclass(frozen=True)
class SourceRun:
    """What became of the examples of ``source`` on ``side``, with ``tensors`` of a kind, empty for the framework itself.

    ``unseen`` are on record, were chosen, and were not run.
    """

    source: Source
    side: str
    judgements: tuple[Judgement, ...]
    unseen: tuple[str, ...] = ()
    seconds: float = 0.0
    tensors: str = ""

    @property
    def part(self) -> Part:
        """Where the examples were run."""
        return Part(self.source.framework, self.side, self.tensors)

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(judgement.verdict for judgement in self.judgements)

    @property
    def changed(self) -> list[Judgement]:
        """The judgements that the record does not say."""
        return [judgement for judgement in self.judgements if judgement.change is not None]

    @property
    def passed(self) -> bool:
        """Tell whether nothing changed, all that is on record was run, and nothing failed that is ours."""
        ours_failed = self.side == SHIM and self.counts[Verdict.FAIL] > 0
        return not ours_failed and not self.changed and not self.unseen


def installed_source(framework: str) -> Source:
    """Read the examples of the installed *framework*, and what is on record of them."""
    version = version_of(framework)
    records = {side: read_records(framework, version, side) for side in (SHIM, REFERENCE)}
    return Source(framework, version, tuple(installed_examples(framework)), records)


def sources_in_files(
    paths: Sequence[Path], is_installed: Callable[[str], bool]
) -> tuple[list[Source], list[str], list[Path]]:
    """Return the examples in files and folders by framework, the frameworks that others use and that are not installed, and the files without any.

    An example that uses a frontend alone needs no framework. Nothing is on record of them. Raises ValueError for a file that cannot be read.
    """
    by_framework: dict[str, list[Example]] = {}
    missing: dict[str, None] = {}
    found = examples_in_files(paths)
    for example in found.examples:
        if absent := [name for name in sorted(needed_frameworks(example)) if not is_installed(name)]:
            missing |= dict.fromkeys(absent)
        else:
            by_framework.setdefault(example.framework, []).append(example)
    sources = [
        Source(name, version_of(name) if is_installed(name) else NOT_INSTALLED, tuple(examples), {}, FILE)
        for name, examples in by_framework.items()
    ]
    return sources, list(missing), found.without


def run_source(
    source: Source,
    side: str = SHIM,
    patterns: Sequence[str] = (),
    on_begin: Callable[[Example], None] = lambda example: None,
    on_judgement: Callable[[Judgement], None] = lambda judgement: None,
    ours: SourceRun | None = None,
    sides: Mapping[str, Side] | None = None,
    tensors: str | None = None,
) -> SourceRun:
    """Run the examples of *source* that *patterns* choose on *side*; tell of each as it begins, and as it is judged.

    The frontends get *tensors* of a kind, None for those that the examples make. An example is not run with a kind that it is on record not to
    go with, as long as its text is the recorded one.
    *ours* is what became of them on the frontends, with which the framework itself is compared.
    Where nothing is on record of a source, its examples are judged by themselves: none is said to have changed.
    """
    recorded = source.is_recorded(side)
    kind = "" if side == REFERENCE else tensors or source.framework
    records = {name: record for name, record in source.records.get(side, {}).items() if is_chosen(name, patterns)}
    examples = [example for example in source.examples if is_chosen(example.name, patterns)]
    chosen = (SIDES if sides is None else sides)[side]
    known = {judgement.outcome.example.name: judgement for judgement in ours.judgements} if ours else {}
    judgements: list[Judgement] = []
    begin = time.perf_counter()

    def on_outcome(outcome: Outcome) -> None:
        name = outcome.example.name
        judgement = chosen.judge(outcome, records.get(name), known.get(name))
        judgements.append(judgement if recorded else replace(judgement, change=None))
        on_judgement(judgements[-1])

    others = []
    for example in examples:
        reason = too_many_ranks(example)
        if reason:
            on_begin(example)
            change = f"needs {example.ranks} ranks" if recorded else None
            judgements.append(
                Judgement(Outcome(example, (), (), 0.0, tensors=kind), Verdict.NOT_RUNNABLE, reason, change)
            )
            on_judgement(judgements[-1])
            continue
        why = source.refusal(example, kind)
        if why:
            on_begin(example)
            on_outcome(Outcome(example, (), (), 0.0, tensors=kind, refusal=why))
        else:
            others.append(example)
    chosen.run(others, on_outcome, on_begin, kind)
    unseen = tuple(missing(judgements, records))
    return SourceRun(source, side, tuple(judgements), unseen, time.perf_counter() - begin, kind)
