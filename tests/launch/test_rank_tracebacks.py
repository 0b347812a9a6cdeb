"""Which lines of ranks' tracebacks are shown at the end, and when two ranks have said the same."""

from __future__ import annotations

import os
import time

import pytest

import shim.errors
from shim.launch.output import RankOutput, what_it_says, without_our_frames

FOLDER = os.path.dirname(shim.errors.__file__).encode()
HEAD = b"Traceback (most recent call last):"
USERS = [b'  File "/home/user/train.py", line 3, in <module>', b"    dist.all_reduce(x)", b"    ^^^^^^^^^^^^^^^^^^"]
OURS = [b'  File "%s/core/calls.py", line 9, in all_reduce' % FOLDER, b"    raise error"]
CLI = [b'  File "%s/cli/run.py", line 9, in run' % FOLDER, b"    go()"]
SAID = [b"shim.errors.MismatchError: they differ (rank 1 of 3, group 'world')", b"  rank 1: barrier()  <- this rank"]
CHAIN = [b"", b"During handling of the above exception, another exception occurred:", b""]


def test_our_frames_are_left_out_of_our_errors_alone() -> None:
    assert without_our_frames([HEAD, *USERS, *OURS, *SAID]) == [HEAD, *USERS, *SAID]
    assert without_our_frames([HEAD, *CLI, *OURS, *SAID]) == [HEAD, *CLI, *SAID]
    for kept in ([HEAD, *USERS, *OURS, b"KeyError: 1"], [HEAD, *OURS, *SAID], [HEAD, *USERS, *OURS], SAID):
        assert without_our_frames(kept) == kept
    both = [HEAD, *USERS, *OURS, b"KeyError: 1", *CHAIN, HEAD, *OURS, *USERS, *OURS, *SAID]
    assert without_our_frames(both) == [*both[:10], HEAD, *USERS, *SAID]


def test_what_ranks_have_in_common_is_compared_without_who_reads_it() -> None:
    def said(rank: int, of: int, place: str = "train.py:3") -> list[bytes]:
        mark = ["  <- this rank" if rank == one else "" for one in range(2)]
        lines = [f"shim.errors.PeerLostError: gone {rank}.5 ms ago (rank {rank} of {of}, group 'world')"]
        return [line.encode() for line in [*lines, f"rank 0 at {place}{mark[0]}", f"rank 1{mark[1]}"]]

    assert what_it_says(said(0, 2)) == what_it_says(said(1, 2))
    assert what_it_says(said(0, 2)) != what_it_says(said(1, 2, "train.py:4"))


def test_what_is_held_back_is_shown_but_for_the_last_lines(capfd: pytest.CaptureFixture[str]) -> None:
    source, to = os.pipe()
    with open(source, "rb", buffering=0) as pipe, open(to, "wb", buffering=0) as program:
        output = RankOutput(0, pipe, 1, None, "wb")
        ignored = [b"Exception ignored in: <x>", HEAD, *USERS, b"KeyError: 2"]
        program.write(b"\n".join([HEAD, *USERS, b"KeyError: 1", *ignored, b"more", HEAD, *USERS, *OURS, *SAID, b""]))
        output.pass_on()
        assert list(output.last_lines) == [HEAD, *USERS, *OURS, *SAID]
        assert output.holds_last_lines
        output.show_held(but_last_lines=True)
        assert not output.holds_last_lines
        program.write(b"late\n")
        output.pass_on()
        shown = [*ignored, HEAD, *USERS, b"KeyError: 1", b"more", b"late"]
        assert capfd.readouterr().out.encode().splitlines() == [b"[0] " + line for line in shown]


def test_a_rank_that_writes_tracebacks_again_and_again_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    source, to = os.pipe()
    with open(source, "rb", buffering=0) as pipe, open(to, "wb", buffering=0) as program:
        output = RankOutput(0, pipe, os.open(os.devnull, os.O_WRONLY), None, "wb")
        untils = []
        for _ in range(5):
            program.write(b"Traceback (most recent call last):\n  File\nValueError\n")
            output.pass_on()
            untils.append(output.held_until)
        assert len(set(untils)) == 1
        output.show_held()
        assert output.held_until == float("inf")
        os.close(output._to)
