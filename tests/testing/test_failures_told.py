"""What the pytest plugin says of a failed test: the cause first, for whom late ranks wait, and what cannot go to the ranks."""

from __future__ import annotations

import pytest

HEADER = """import os, signal, time
import numpy as np
import pytest
import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError
from shim.testing import raises
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tests: str) -> pytest.RunResult:
    monkeypatch.setenv("COLUMNS", "300")  # pytest cuts the lines of its summary
    pytester.makepyfile(test_it=HEADER + tests)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "shim.testing")


CAUSES = """
@pytest.mark.ranks(3)
def test_raised(rank):
    dist.init_process_group()
    if rank == 1:
        raise ValueError("the cause" + chr(10) + "and more of it")
    dist.all_reduce(np.ones(3))

@pytest.mark.ranks(3)
def test_died(rank):
    dist.init_process_group()
    if rank == 2:
        os._exit(7)
    dist.all_reduce(np.ones(3))

class Untellable(Exception):
    def __str__(self):
        raise OSError("no words")

@pytest.mark.ranks(3)
def test_untellable():
    raise Untellable

@pytest.mark.ranks(3, deadline=3)
def test_late(rank):
    dist.init_process_group()
    while rank == 2:
        time.sleep(0.1)
    dist.all_reduce(np.ones(3))
"""


def test_the_cause_comes_first_and_is_in_the_summary(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, CAUSES)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "rank 1: ValueError: the cause (test_it.py:12)",
            "rank 1 of 3:",
            "ValueError: the cause",
            "rank [02] of 3:",
            "*PeerLostError: torch.distributed.all_reduce: rank 1 left the group*",
            "rank [02] of 3:",
            "*test_died*",
            "rank 2 died: its process exited with status 7",
            "rank [01] of 3:",
            "*test_late*",
            "rank 2 had not answered after 3 s: it is at *test_it.py:34 in test_late",
            "rank 2 of 3:",
            "group 'world': waits for nobody",
            "rank 0 of 3:",
            "group 'world': has waited * s: operation 2, all_reduce(float64 [[]3], SUM), at *test_it.py:35 in test_late; "
            "not arrived: rank 2",
            "rank 1 of 3:",
            "FAILED *test_raised* rank 1: ValueError: the cause (test_it.py:12)",
            "FAILED *test_died* rank 2 died: its process exited with status 7",
            "FAILED *test_untellable* rank [012]: Untellable: <its __str__ raised OSError> (test_it.py:28)",
            "FAILED *test_late* rank 2 had not answered after 3 s: it is at *test_it.py:34 in test_late",
        ]
    )
    result.stdout.no_fnmatch_line("Current thread*")
    result.stdout.no_fnmatch_line("*testing/rank.py*")


RAISES = """
@pytest.mark.ranks(3)
def test_all(rank):
    with raises(ValueError, match="before"):
        raise ValueError("before there is a world")
    dist.init_process_group()
    with raises((KeyError, ValueError)) as raised:
        raise ValueError("in it")
    assert str(raised.value) == "in it"
    with raises(MismatchError, match="disagree"):
        dist.all_reduce(np.ones(1 + rank))
    dist.barrier()

@pytest.mark.ranks(3)
def test_gone(rank):
    dist.init_process_group()
    dist.barrier()
    with raises(RuntimeError, match="can no longer be used"):
        if rank == 0:
            dist.destroy_process_group()
            raise RuntimeError("can no longer be used")
        dist.barrier()

@pytest.mark.ranks(3)
def test_the_others_wait(rank):
    dist.init_process_group()
    with raises(ValueError):
        if rank == 1:
            raise ValueError("alone")
        dist.barrier()

@pytest.mark.ranks(3)
def test_one_does_not(rank):
    dist.init_process_group()
    with raises(ValueError):
        if rank != 1:
            raise ValueError("not on all")
    dist.barrier()

@pytest.mark.ranks(3)
def test_one_raises_another(rank):
    dist.init_process_group()
    with raises((ValueError, KeyError)):
        raise [KeyError, OSError, ValueError][rank]("another")

@pytest.mark.ranks(2)
def test_one_says_another(rank):
    dist.init_process_group()
    with raises(ValueError, match="of 0"):
        raise ValueError(f"of {rank}")

@pytest.mark.ranks(2)
def test_one_is_killed(rank):
    dist.init_process_group()
    dist.barrier()
    with raises(ValueError):
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("of the other")

@pytest.mark.ranks(2)
def test_none_does():
    dist.init_process_group()
    with raises(ValueError):
        pass

def test_without_ranks():
    with raises(ValueError):
        pass
"""


def test_an_error_is_expected_on_every_rank(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(pytester, monkeypatch, RAISES)
    result.assert_outcomes(passed=2, failed=7)
    result.stdout.fnmatch_lines(
        [
            "*test_the_others_wait*",
            "*the ranks disagree on the operation*",
            "  rank 0: barrier(), at *test_it.py:*",
            "  rank 1: going on after an expected error, at *test_it.py:33 in test_the_others_wait",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "*test_one_does_not*",
            "ranks 0, 2 raised ValueError, rank 1 did not raise (test_it.py:41)",
            "rank 1 of 3:",
            '  File "*test_it.py", line 41, in test_one_does_not',
            "Failed: DID NOT RAISE ValueError",
            "rank [02] of 3:",
            '  File "*test_it.py", line 41, in test_one_does_not',
            "    with raises(ValueError):",
            "Failed: this rank raised ValueError, before rank 1 had raised as well",
            "shim.testing.raises: rank 1 left the group*",
        ]
    )
    summary = {
        line.split(" - ")[0].split("::")[1]: line.split(" - Failed: ")[1]
        for line in result.outlines
        if " - Failed: " in line
    }
    one = (
        "rank 0: DID NOT RAISE ValueError (test_it.py:70)",
        "rank 1: DID NOT RAISE ValueError (test_it.py:70)",
    )
    assert summary["test_one_raises_another[3ranks]"] == (
        "rank 0 raised KeyError, rank 2 raised ValueError, rank 1 raised OSError: another (test_it.py:50)"
    )
    assert summary["test_one_says_another[2ranks]"] == (
        "rank 0 raised ValueError, rank 1 raised ValueError with another message (test_it.py:55)"
    )
    assert summary["test_none_does[2ranks]"] in one
    result.stdout.fnmatch_lines(["*test_without_ranks*", ">*with raises(ValueError):", "test_it.py:74: Failed"])
    for frame in ("*expected_errors.py*", "*testing/rank.py*", "*contextlib.py*"):
        result.stdout.no_fnmatch_line(frame)


FIXTURES = """
@pytest.fixture
def opened(tmp_path):
    with open(tmp_path / "file", "w") as file:
        yield file

@pytest.mark.ranks(2)
def test_own(opened): pass

@pytest.mark.ranks(2)
def test_pytests(request): pass

@pytest.mark.ranks(2)
def test_recorded(recwarn): pass

@pytest.mark.ranks(2)
@pytest.mark.parametrize("value", [lambda: 1])
def test_parameter(value): pass

@pytest.mark.ranks(2)
def test_paths(tmp_path, tmp_path_factory): assert tmp_path.is_dir()
"""


def test_a_fixture_that_cannot_go_to_the_ranks_says_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, FIXTURES)
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "the fixture 'opened' cannot go to the rank processes: its value cannot be pickled: *TextIOWrapper*",
            "the fixture 'request' cannot go to the rank processes: it works in pytest's own process alone",
            "the fixture 'recwarn' cannot go to the rank processes: it works in pytest's own process alone",
            "the parameter 'value' cannot go to the rank processes: its value cannot be pickled: *",
        ]
    )
