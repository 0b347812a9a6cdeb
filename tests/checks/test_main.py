from __future__ import annotations

import pytest

from checks import __main__ as checks


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", {"good": lambda root: [], "bad": lambda root: ["a:1: wrong", "b:2: wrong"]})


@pytest.mark.usefixtures("two_checks")
@pytest.mark.parametrize(
    ("names", "status", "printed"),
    [
        ([], 1, ["good                 ok", "bad                  2 finding(s)", "    a:1: wrong", "    b:2: wrong", "1 check(s) failed"]),
        (["good"], 0, ["good                 ok", "all checks passed"]),
        (["worse"], 2, ["no check is called worse; there are good, bad"]),
    ],
)  # fmt: skip
def test_one_line_a_check_and_details_for_failures(
    names: list[str], status: int, printed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert checks.main(names) == status
    assert capsys.readouterr().out.splitlines() == printed
