"""Other projects' tests: what is read of a pytest, what counts, and what the page says of differences."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from campaigns.suites import listed, page, record, running, sources
from campaigns.suites.running import PASSED, Run, read
from campaigns.suites.suite import ENGINE, GLOO, Difference, Selection, Suite

TESTS = Selection(("unit/test_groups.py",), folder="tests")
SUITE = Suite("example", "library", "1.0", (TESTS,), (), replaced=(("npu", "cpu"),))
FILE = "tests/unit/test_groups.py"
JUNIT = """\
<testsuites><testsuite>
<testcase classname="unit.test_groups" name="test_sum[2]" />
<testcase classname="tests.unit.test_groups.TestOrder" name="test_first"><failure message="E  assert 1
== 2">trace</failure></testcase>
<testcase classname="unit.test_groups" name="test_gpu"><skipped message="no GPU" /></testcase>
</testsuite></testsuites>
"""


def ran(recordings: int = 2, **endings: str) -> Run:
    return Run({f"{FILE}::{test}": ending for test, ending in endings.items()}, {FILE: recordings})


def entry(ours: Run, again: Run | None = None) -> dict[str, Any]:
    gloo = ran(0, test_a=PASSED, test_b=PASSED, test_c="AssertionError", test_d="skipped: no GPU")
    return record.entry_of("1.0", {GLOO: gloo, ENGINE: ours}, {ENGINE: {GLOO: gloo, ENGINE: again}} if again else {})


def test_tests_have_the_ids_that_pytest_takes(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(JUNIT, encoding="utf-8")
    assert read(junit, TESTS, "unit/test_groups.py", "") == {
        f"{FILE}::test_sum[2]": PASSED,
        f"{FILE}::TestOrder::test_first": "E  assert 1 == 2",
        f"{FILE}::test_gpu": "skipped: no GPU",
    }


def test_a_pytest_that_crashes_is_told(tmp_path: Path) -> None:
    ending = read(tmp_path / "none.xml", TESTS, "unit/test_groups.py", "begun\n\nFatal Python error\n")
    assert ending == {FILE: "pytest ended without results: begun / Fatal Python error"}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_pytest_leaves_running_is_ended(tmp_path: Path) -> None:
    leaves = (
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid)"
    )
    begun = time.monotonic()
    pid = int(running._carry_out([sys.executable, "-c", leaves], {}, tmp_path, 50.0))
    while is_running(pid):
        assert time.monotonic() - begun < 50
    late = running._carry_out([sys.executable, "-c", "import time; time.sleep(60)"], {}, tmp_path, 0.1)
    assert late == "\nno end within 0.1 s"


def test_files_count_where_the_engine_served_groups() -> None:
    served = entry(ran(test_a=PASSED, test_b=PASSED))
    assert served[GLOO] == {"passed": 2, "failed": 1, "skipped": 1}
    assert served[ENGINE] == {"passed": 2, "differing": {}}
    assert served["files"] == [FILE]
    not_served = entry(ran(0, test_a=PASSED, test_b=PASSED))
    assert not_served[GLOO]["passed"] == not_served[ENGINE]["passed"] == 0
    assert not_served["without groups"] == [FILE]


@pytest.mark.parametrize(
    ("again", "told", "passed"),
    [
        (ran(test_b="RuntimeError: late"), "RuntimeError: no", 1),
        (ran(test_b=PASSED), record.UNSTEADY, 2),
        (None, "RuntimeError: no", 1),
    ],
)
def test_a_difference_is_one_if_it_repeats(again: Run | None, told: str, passed: int) -> None:
    of_engine = entry(ran(test_a=PASSED, test_b="RuntimeError: no"), again)[ENGINE]
    assert of_engine == {"passed": passed, "differing": {f"{FILE}::test_b": told}}


def test_a_test_that_does_not_run_differs() -> None:
    assert entry(ran(test_a=PASSED))[ENGINE]["differing"] == {f"{FILE}::test_b": "did not run"}


def test_the_page_shows_each_difference_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "SUITES", (SUITE,))
    monkeypatch.setattr(page, "LEFT_OUT", ())
    monkeypatch.setattr(page, "DIFFERENCES", (Difference("example", "*::test_b", "it asks for gloo", "2.1*"),))
    differs = entry(ran(test_a=PASSED, test_b="RuntimeError: no"))
    text = page.text({"example": {"2.13.0": differs, "2.9.1": differs}})
    assert f"| example | `{FILE}::test_b` | 2.13.0 | it asks for gloo |" in text
    assert f"| example | `{FILE}::test_b` | 2.9.1 | **not known yet** |" in text
    assert [reason for _, reason in page.reasons("example", "2.13.0", differs)] == ["it asks for gloo"]
    assert [reason for _, reason in page.reasons("example", "2.9.1", differs)] == [""]


def test_replacements_are_made_in_a_copy(tmp_path: Path) -> None:
    source = tmp_path / "fetched" / "tests" / "test_one.py"
    source.parent.mkdir(parents=True)
    source.write_text("device = 'npu'\n", encoding="utf-8")
    sources.copy(SUITE, tmp_path / "fetched", tmp_path / "copy", SUITE.replaced)
    assert (tmp_path / "copy" / "tests" / "test_one.py").read_text(encoding="utf-8") == "device = 'cpu'\n"
    assert source.read_text(encoding="utf-8") == "device = 'npu'\n"


def test_the_lists_fit_together() -> None:
    names = [suite.name for suite in listed.SUITES]
    assert len(set(names)) == len(names)
    assert {one.suite for one in listed.LEFT_OUT} | {one.suite for one in listed.DIFFERENCES} <= {*names}
    for suite in listed.SUITES:
        assert suite.repository or suite.version
        for pattern, _ in (*suite.replaced, *suite.frontend):
            re.compile(pattern)
