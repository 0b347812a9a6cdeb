"""The programs of the reports in docs/upstream: as their pages say on the frontends, and not so on the frameworks themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from shim.conformance.examples.judging import Verdict
from shim.conformance.examples.suite import REFERENCE, SHIM, Source, run_source, sources_in_files
from shim.conformance.kinds import is_installed

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "upstream"
ABOUT_PAGES = "- Wrong: the documentation"  # both do what the program shows; the page shows something else


def sources() -> list[Source]:
    found, _, _ = sources_in_files([FOLDER], is_installed)
    return found


@pytest.mark.frameworks
def test_every_report_has_one_program():
    programs = [example.place.partition(",")[0] for source in sources() for example in source.examples]
    assert sorted(programs) == sorted(file.name for file in FOLDER.glob("*.md") if file.stem != "index")


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", ["torch", "paddle", "mindspore"])
def test_the_frontends_do_what_the_programs_show(framework):
    [source] = [source for source in sources() if source.framework == framework]
    run = run_source(source, SHIM)
    assert {
        each.outcome.example.place: each.reason for each in run.judgements if each.verdict is not Verdict.PASS
    } == {}
    assert [each.outcome.failures for each in run.judgements if not each.outcome.passed] == []


@pytest.mark.nightly
@pytest.mark.frameworks
@pytest.mark.parametrize("framework", ["torch", "paddle", "mindspore"])
def test_the_frameworks_still_do_not(framework):
    [source] = [source for source in sources() if source.framework == framework]
    run = run_source(source, REFERENCE)
    passed = [each.outcome.example.place.partition(",")[0] for each in run.judgements if each.outcome.passed]
    about_pages = [name for name in passed if ABOUT_PAGES in (FOLDER / name).read_text(encoding="utf-8")]
    assert passed == about_pages  # another one that passes is repaired: remove its report
