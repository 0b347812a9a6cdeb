from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from campaigns import nightly
from checks import __main__ as checks

ROOT = Path(__file__).resolve().parents[2]


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.fixture
def two_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = "import os; print(os.listdir(os.environ['PLACE']), os.getcwd())"
    jobs = {
        "bad": nightly.Job("a", (python("raise SystemExit(3)"), python("print('never')"))),
        "good": nightly.Job("b", (python("open(r'{build}/made', 'w')"), python(looks)), (("PLACE", "{build}"),)),
    }
    monkeypatch.setattr(nightly, "JOBS", jobs)


@pytest.mark.usefixtures("two_jobs")
def test_a_failed_job_is_told_and_the_others_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert checks.main(["nightly"]) == 1
    printed = capfd.readouterr().out
    assert re.search(r"^bad +FAILED with status 3 after \d+ s\ngood +passed after \d+ s$", printed, re.MULTILINE)
    assert f"['made'] {ROOT}\n" in printed
    assert "\nnever" not in printed


@pytest.mark.usefixtures("two_jobs")
def test_only_the_named_jobs_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert checks.main(["nightly", "good"]) == 0
    assert "bad" not in capfd.readouterr().out


@pytest.mark.usefixtures("two_jobs")
def test_an_unknown_job_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        checks.main(["nightly", "worse"])
    assert ended.value.code == 2
    assert "no job is called worse; there are bad, good" in capsys.readouterr().err


def test_what_jobs_name_in_the_tests_exists() -> None:
    named = {argument for job in nightly.JOBS.values() for command in job.commands for argument in command}
    folders = {argument for argument in named if argument.startswith("tests/")}
    assert folders
    assert all((ROOT / folder).exists() for folder in folders)
