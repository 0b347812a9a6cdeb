"""What a run of the conformance suite consists of: the five documents' cases, and the installed frameworks' own examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shim.conformance.documents.case import Case, Document
from shim.conformance.documents.pages import DOCUMENTS, source_of_cases
from shim.conformance.examples.example import is_chosen, unmatched
from shim.conformance.examples.suite import (
    NOT_INSTALLED,
    REFERENCE,
    SHIM,
    Part,
    Source,
    SourceRun,
    installed_source,
    sources_in_files,
)
from shim.conformance.kinds import KINDS, Selection, is_installed, select_kinds
from shim.conformance.matrix.cells import Matrix
from shim.conformance.matrix.rows import rows_of_cases, rows_of_examples, subject_of
from shim.conformance.runner import Run

FRAMEWORKS = tuple(kind for kind in KINDS if kind != "numpy")


@dataclass(frozen=True)
class Plan:
    """What is to be run: cases of ``pages`` with the tensors of ``selection``, and on ``sides`` the examples of ``sources``.

    The frontends get each of ``tensors``, None for those that each example makes. ``cases`` are those of the pages that are run on the
    frameworks themselves. ``patterns`` choose among the examples (``selection.is_chosen``). ``absent`` frameworks are not installed,
    ``missing`` are those of them that were asked for. ``unknown`` has a line for every pattern that means nothing. ``without`` are
    files in the folders that were given which have no examples.
    """

    pages: tuple[Document, ...]
    selection: Selection
    sources: tuple[Source, ...]
    patterns: tuple[str, ...] = ()
    sides: tuple[str, ...] = (SHIM,)
    cases: tuple[Source, ...] = ()
    absent: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    without: tuple[Path, ...] = ()
    tensors: tuple[str, ...] | None = None

    def parts_of(self, source: Source) -> list[Part]:
        """Return where the examples of *source* are to be run: with their own tensors first, on the framework itself last.

        With their own they run wherever the framework itself does, which is compared with that.
        """
        own = source.framework
        kinds = [own] if self.tensors is None else sorted(self.tensors, key=lambda kind: kind != own)
        kinds = kinds if own in kinds or REFERENCE not in self.sides else [own, *kinds]
        ours = [Part(own, SHIM, kind) for kind in kinds]
        theirs = [Part(own, side, "") for side in self.sides if side != SHIM and source.version != NOT_INSTALLED]
        return [*ours, *theirs]

    @property
    def totals(self) -> dict[Part, int]:
        """How many examples of the frameworks are to be run in each part."""
        counts: Counter[Part] = Counter()
        for source in self.sources:
            for part in self.parts_of(source):
                counts[part] += self._count(source)
        for cases in self.cases:
            counts[Part(cases.framework, REFERENCE, "")] += self._count(cases)
        return counts

    def _count(self, source: Source) -> int:
        return sum(is_chosen(example.name, self.patterns) for example in source.examples)


def make_plan(
    frameworks: Sequence[str] | None = None,
    patterns: Sequence[str] = (),
    kinds: Sequence[str] | None = None,
    reference: bool = False,
    read: Callable[[str], Source] = installed_source,
) -> Plan:
    """Choose what is to be run; with None, all there is. *read* gets the name of every installed framework that is chosen.

    *kinds* of tensor are for cases and examples; with None, cases run with all that are installed, and examples with their own.
    """
    wanted = [name for name in FRAMEWORKS if frameworks is None or name in frameworks]
    pages = tuple(page for page in DOCUMENTS if page.framework in wanted)
    absent = tuple(name for name in wanted if not is_installed(name))
    only_cases = bool(patterns) and all(":" in pattern for pattern in patterns)  # in their names alone there is one
    sources = () if only_cases else tuple(read(name) for name in wanted if name not in absent)
    selection = select_kinds(kinds)
    names = [case.title for page in pages for case in page.cases]
    names += [example.name for source in sources for example in source.examples]
    on_frameworks = [source_of_cases(name, pages) for name in wanted if name not in absent] if reference else []
    return Plan(
        tuple(page for page in (_part_of(page, patterns) for page in pages) if page.cases),
        selection,
        sources,
        tuple(patterns),
        (SHIM, REFERENCE) if reference else (SHIM,),
        tuple(source for source in on_frameworks if any(is_chosen(each.name, patterns) for each in source.examples)),
        absent,
        absent if frameworks else (),
        tuple(unmatched(names, patterns)),
        tensors=None if kinds is None else selection.present,
    )


def plan_of_files(
    paths: Sequence[Path],
    frameworks: Sequence[str] | None = None,
    patterns: Sequence[str] = (),
    reference: bool = False,
) -> Plan:
    """Choose among the examples in files and folders. The frameworks that they use, beside frontends, have to be there.

    Raises ValueError where a file cannot be read, or one of *paths* has no examples, OSError where it is not there.
    """
    sources, missing, without = sources_in_files(paths, is_installed)
    wanted = FRAMEWORKS if frameworks is None else frameworks
    chosen = tuple(source for source in sources if source.framework in wanted)
    absent = tuple(name for name in missing if name in wanted)
    names = [example.name for source in chosen for example in source.examples]
    sides = (SHIM, REFERENCE) if reference else (SHIM,)
    unknown = tuple(unmatched(names, patterns))
    return Plan((), select_kinds(None), chosen, tuple(patterns), sides, (), absent, absent, unknown, tuple(without))


def _part_of(page: Document, patterns: Sequence[str]) -> Document:
    return replace(page, cases=tuple(case for case in page.cases if is_chosen(case.title, patterns)))


def matrix_of(plan: Plan, cases: Run[Case] | None, runs: Sequence[SourceRun], seconds: float) -> Matrix:
    """Put together what was found: of the *cases*, where any were run, and of the frameworks' examples."""
    rows = [row for source in plan.sources for row in rows_of_examples([run for run in runs if run.source is source])]
    on_frameworks = [run for run in runs if run.source in plan.cases]
    rows += [] if cases is None else rows_of_cases(plan.pages, cases, on_frameworks)
    missing = tuple(dict.fromkeys((*plan.missing, *plan.selection.missing)))
    absent = tuple(dict.fromkeys((*plan.absent, *missing)))
    passed = bool(rows) and all(run.passed for run in runs) and (cases is None or cases.passed) and not missing
    versions = {} if cases is None else cases.versions
    subjects = tuple(subject_of(run) for run in runs)
    return Matrix(tuple(rows), subjects, passed, seconds, versions, absent, missing)
