"""The five documents' cases: on the frontends with every kind of tensor, and on the frameworks themselves.

For these, the frontends' modules are replaced by those that they stand for, and a case becomes an example of one step, so that it is run,
judged and shown as the frameworks' own examples are.
"""

from __future__ import annotations

import importlib
import inspect
import os
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from shim.conformance import assertions
from shim.conformance.documents import mindspore_cases, paddle_cases, torch_cases
from shim.conformance.documents.case import Case, Document, as_text
from shim.conformance.examples.example import Example, Step, Wanted
from shim.conformance.examples.judging import judge_reference, read_records
from shim.conformance.examples.running.rank import Sight, StepSight
from shim.conformance.examples.running.reference import Variables, enter, run_on_frameworks
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import CASE, REFERENCE, Side, Source
from shim.conformance.kinds import Selection, kind_named
from shim.conformance.runner import Result, Run, run_in_ranks
from shim.record.releases import version_of
from shim.substitution.mirrors import frontends_of_installed

DOCUMENTS: tuple[Document, ...] = (*torch_cases.DOCUMENTS, *paddle_cases.DOCUMENTS, *mindspore_cases.DOCUMENTS)


def case_named(document: str, case: str) -> Case:
    """Return the case called *case* of the document called *document*."""
    return next(each for page in DOCUMENTS if page.name == document for each in page.cases if each.name == case)


def run_documents(
    documents: Sequence[Document], selection: Selection, on_result: Callable[[Result[Case]], Any] = lambda result: None
) -> Run[Case]:
    """Run every case of *documents* with every kind of tensor that is present; tell *on_result* of each as it ends."""
    run: Run[Case] = Run(tuple(case for page in documents for case in page.cases), selection)
    return run_in_ranks(run, planned(documents, selection), on_result, [__name__])


def planned(documents: Sequence[Document], selection: Selection) -> list[tuple[Case, str]]:
    """Return the cases to run, kind by kind, each with the kind of tensor."""
    cases = [case for page in documents for case in page.cases]
    return [(case, kind) for kind in selection.present for case in cases if case.is_for(kind)]


def source_of_cases(framework: str, pages: Sequence[Document]) -> Source:
    """Return the cases of *pages* that are for the installed *framework*, and what is on record of them."""
    version = version_of(framework)
    root = frontends_of_installed()[framework]
    examples = [
        example_of_case(page, case)
        for page in pages
        for case in page.cases
        if page.framework == framework and f"{case.frontend}.".startswith(f"{root}.") and case.is_for(framework)
    ]
    records = {REFERENCE: read_records(f"{framework}-cases", version, REFERENCE)}
    return Source(framework, version, tuple(examples), records, CASE)


def example_of_case(page: Document, case: Case) -> Example:
    """Return *case* as an example, whose one step shows each rank's tensors."""
    code = inspect.getsource(case.call)
    computed = case.documented or case.computed
    last = len(code.splitlines())
    wanted = Wanted({rank: as_text(arrays) for rank, arrays in enumerate(computed)}, last)
    step = Step(code, last, 0, wanted)
    return Example(page.framework, case.title, 1, code, page.source, (step,), case.ranks)


def _run(
    examples: Sequence[Example],
    on_outcome: Callable[[Outcome], None],
    on_begin: Callable[[Example], None],
    tensors: str,
) -> list[Outcome]:
    target = "shim.conformance.documents.pages:see_case_on_this_rank"
    return run_on_frameworks(target, examples, on_outcome, on_begin)


CASE_SIDES = {REFERENCE: Side(_run, judge_reference)}


def see_case_on_this_rank(example: Example, variables: Variables) -> Sight:
    """Run the case that *example* was made of with the framework itself on the rank that this process is.

    The process is a copy for this case: what is replaced in the case's module stays so.
    """
    rank = enter(example.framework, variables)
    document, _, name = example.function.partition(": ")
    case, kind = case_named(document, name), kind_named(example.framework)
    on_the_framework(case.call.__globals__, example.framework)
    os.chdir(tempfile.mkdtemp())  # frameworks leave files where they run
    line = example.steps[0].line
    try:
        arrays = case.see(kind, rank, case.ranks)
    except BaseException as error:  # an exit or interrupt out of a case is its failure, not the end of the process
        if _is_ours(error):
            return Sight((StepSight(line, (), str(error)),), ())
        return Sight((StepSight(line, (), None, traceback.format_exc()),), ())
    differences = [failure.details for failure in case.judge({rank: arrays})]
    return Sight((StepSight(line, (as_text(arrays),), differences[0] if differences else None),), ())


def on_the_framework(names: dict[str, Any], framework: str) -> None:
    """Replace the modules of frontends among *names* by the modules of *framework* that they stand for."""
    root = frontends_of_installed()[framework]
    for name, value in list(names.items()):
        if isinstance(value, ModuleType) and value.__name__.startswith(f"{root}."):
            names[name] = importlib.import_module(value.__name__.replace(root, framework, 1))


def _is_ours(error: BaseException) -> bool:
    """Tell whether *error* is a comparison of the case's own that failed, not an error of the framework."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, AssertionError) and Path(frames[-1].filename) == Path(assertions.__file__)
