from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.torch_suite import __main__ as command
from campaigns.torch_suite.verdicts import (
    DIFFERENCES,
    FAILED,
    LEFT_OUT,
    PASSED,
    REFUSED,
    Verdict,
    findings,
    read,
    write,
)

DIFFERENCE = next(iter(DIFFERENCES))


@pytest.mark.parametrize(
    ("name", "gloo", "ours", "found"),
    [
        ("test_a", PASSED, Verdict(PASSED), []),
        ("test_a", PASSED, Verdict(FAILED, "KeyError"), ["test_a: gloo passes it, here it fails with KeyError"]),
        ("test_a", PASSED, Verdict(REFUSED, "U"), ["test_a: gloo passes it, here it is refused with U"]),
        ("test_a", PASSED, Verdict(LEFT_OUT, "why"), ["test_a: gloo passes it, here it is left out: why"]),
        ("test_a", FAILED, Verdict(FAILED, "KeyError"), []),
        ("test_a", FAILED, Verdict(PASSED), []),
        (DIFFERENCE, PASSED, Verdict(FAILED, "AssertionError"), []),
        (DIFFERENCE, PASSED, Verdict(PASSED), [f"{DIFFERENCE}: listed as different, and passed"]),
    ],
)
def test_what_is_a_finding(name: str, gloo: str, ours: Verdict, found: list[str]) -> None:
    assert list(findings({name: Verdict(gloo)}, {name: ours})) == found


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    verdicts = {
        2: {"test_a": Verdict(PASSED), "test_b": Verdict(LEFT_OUT, "no GPU")},
        4: {"test_a": Verdict(FAILED, "KeyError")},
    }
    write(tmp_path / "record.json", verdicts)
    assert read(tmp_path / "record.json") == verdicts


def test_a_finding_fails_the_command_and_what_is_left_out_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    gloo = {2: {"test_a": Verdict(PASSED), "test_b": Verdict(LEFT_OUT, "no GPU"), DIFFERENCE: Verdict(PASSED)}}
    ours = {2: {"test_a": Verdict(FAILED, "KeyError", "the traceback"), DIFFERENCE: Verdict(FAILED, "AssertionError")}}
    assert command.summary(gloo, ours, complete=True) == 1
    printed = capsys.readouterr().out
    for line in (
        "2 ranks: 0 of 2 tests pass, of which gloo passes 2",
        "  torch says: no GPU (2 ranks, 1 test)\n    test_b",
        f"1 test)\n    {DIFFERENCE}",
        "2 ranks: test_a: gloo passes it, here it fails with KeyError\n    the traceback",
        "1 test(s) failed",
    ):
        assert line in printed
    assert command.summary(gloo, {2: {**ours[2], "test_a": Verdict(PASSED)}}, complete=True) == 0
