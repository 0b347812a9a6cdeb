"""What ranks say of each other when one disagrees, is missing or goes: where every one of them is in its program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from shim_run import DEADLINE, environment, read_pids, run, start

BEGINNING = """\
import os, signal, time
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group()
rank = dist.get_rank()
"""


@pytest.fixture
def ranks(script: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that makes a script of what initialised ranks do."""
    return lambda body: script(BEGINNING + body)


def of_rank(rank: int, output: str) -> str:
    return "\n".join(line[4:] for line in output.splitlines() if line.startswith(f"[{rank}] "))


@pytest.mark.parametrize("how", ["", ", async_op=True"], ids=["at once", "in the background"])
def test_every_rank_reads_where_the_others_calls_are(ranks: Callable[[str], str], how: str) -> None:
    program = ranks(f"""
def step(count):
    work = dist.all_reduce(np.ones(count){how})
    if work is not None: work.wait()
def train():
    if rank == 1:
        step(4)
    else:
        step(3)
try:
    train()
except RuntimeError as error:
    print(error)
dist.barrier()
""")
    done = run("-n", "3", program)
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        told = of_rank(rank, done.stdout)
        for peer in range(3):
            row = rf"rank {peer}: all_reduce\(float64 \[{4 if peer == 1 else 3}\], SUM\), at {program}:8 in step"
            assert re.search(row + (r"  <- this rank$" if peer == rank else "$"), told, re.MULTILINE), told
        assert "They differ: [3] on ranks 0 and 2, [4] on rank 1." in told


def test_a_refused_call_is_told_with_its_line(ranks: Callable[[str], str]) -> None:
    program = ranks("""
try:
    dist.all_reduce("no tensor" if rank == 0 else np.ones(3))
except (RuntimeError, TypeError) as error:
    print(error)
""")
    told = of_rank(1, run("-n", "2", program).stdout)
    assert re.search(rf"rank 0: refused: .*tensor must be a tensor.*, at {program}:8$", told, re.MULTILINE), told
    assert "They differ: refused on rank 0, made on rank 1." in told


def test_who_sends_what_nobody_expects_is_named(ranks: Callable[[str], str]) -> None:
    program = ranks("""
try:
    dist.all_to_all_single(np.ones(4), np.ones(5 if rank == 0 else 4), [2, 2], [2, 3] if rank == 0 else [2, 2])
except RuntimeError as error:
    print(error)
""")
    told = of_rank(0, run("-n", "2", program).stdout)
    assert "They differ: rank 0 sends 3 elements to rank 1, which expects 2.\n" in told


def test_a_rank_that_waits_long_says_where_the_others_are(ranks: Callable[[str], str]) -> None:
    program = ranks("""
def load_batch():
    time.sleep(3)
def step():
    dist.all_reduce(np.ones(3))
step()
if rank == 1: load_batch()
if rank == 2: os.kill(os.getpid(), signal.SIGSTOP)
if rank == 3: dist.recv(np.ones(1), src=1)
if rank == 1: dist.send(np.ones(1), dst=3)
if rank != 3: step()
""")
    with start("-n", "4", program, env=environment(SHIM_STALL_WARNING="1")) as process:
        assert process.stderr is not None
        told = ""
        while "[0] It goes on waiting" not in told:
            told += process.stderr.readline()
        process.kill()
    report = of_rank(0, told)
    assert "rank 0 of 4 has waited 1 s in group 'world': operation 3, all_reduce(float64 [3], SUM)" in report
    assert "; not arrived: rank 1, rank 2, rank 3\n" in report
    assert re.search(rf"rank 1 \(pid \d+, sleeping\) is at {program}:8 in load_batch\n", report), report
    assert re.search(r"rank 2 \(pid \d+, stopped\) is stopped, as by SIGSTOP", report), report
    assert re.search(
        rf"rank 3 \(pid \d+, \w+\) has waited .* s: receiving 1 element of float64 from rank 1 with tag 0, at {program}:14\n",
        report,
    ), report
    assert report.count("last calls: 2 all_reduce(float64 [3], SUM), 1 broadcast") == 3


def test_a_timeout_tells_the_same(ranks: Callable[[str], str]) -> None:
    program = ranks("""
from datetime import timedelta
group = dist.new_group(timeout=timedelta(seconds=2))
if rank == 0:
    try:
        dist.barrier(group)
    except RuntimeError as error:
        print(error)
else:
    dist.barrier()  # another group's
dist.barrier()
""")
    told = of_rank(0, run("-n", "2", program).stdout)
    assert "made no progress for 2 s; not arrived: rank 1" in told
    assert re.search(rf"has waited .* s: operation \d, barrier\(\), at {program}:15 \(of group 'world'\)", told), told


def test_the_others_hear_which_exception_ended_a_rank(ranks: Callable[[str], str]) -> None:
    program = ranks("""
if rank == 1:
    raise ValueError("too hot")
try:
    dist.barrier()
except RuntimeError as error:
    print(error)
""")
    told = of_rank(0, run("-n", "2", program).stdout)
    assert re.search(r"rank 1 left the group \(\w+\.py:8: ValueError: too hot\) at operation", told), told


@pytest.mark.parametrize("where", ["dist.barrier()", "dist.recv(np.ones(1), src=0)", "time.sleep(60)"])
def test_sigterm_shows_where_a_rank_was(ranks: Callable[[str], str], where: str) -> None:
    program = ranks(f"""
if rank == 1:
    child = os.fork()  # as a worker of a data loader, which is not to say anything
    if child == 0: time.sleep(60)
    time.sleep(0.3)
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
print("pid", os.getpid())
if rank == 1:
    {where}
time.sleep(60)
""")
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        time.sleep(0.5)  # until it waits
        os.kill(pids[1], signal.SIGTERM)
        _, stderr = process.communicate(timeout=DEADLINE)
    before_the_end = stderr.partition("shim run:")[0]
    assert f'[1]   File "{program}", line 15 in <module>' in before_the_end
    of_rank_1 = before_the_end.count("[1] ")
    assert of_rank_1 == before_the_end.count("[1]   File") + 1  # one traceback, and nothing of the child


def test_the_doctor_shows_who_waits_for_whom(ranks: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    program = ranks("""
print("pid", os.getpid(), flush=True)
if rank == 1: time.sleep(60)
dist.all_reduce(np.ones(3))
""")
    monkeypatch.setenv("SHIM_ENGINE", "plain")
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        time.sleep(1)
        told = doctor("--json")
        shown = doctor("--job", program)
        over_ssh = doctor("--job", program, "--hosts", "node7", "--ssh", "sh -c 'eval \"$1\"'")
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert f"rank 1 (pid {pids[1]} on node7, sleeping) is at {program}:8" in over_ssh
    assert f"; not arrived: rank 1 (pid {pids[1]} on node7)\n" in over_ssh
    ours = {one["pid"]: one for one in json.loads(told)}
    waiting, sleeping = (ours[pid]["groups"][0] for pid in pids)
    assert waiting["inode"] == sleeping["inode"]
    assert [waiting["rank"], sleeping["rank"]] == [0, 1]
    assert re.search(rf"^has waited .* s: operation 2, all_reduce.*, at {program}:9$", waiting["waits"])
    assert sleeping["waits"] == ""
    assert ours[pids[1]]["place"] == f"{program}:8"
    assert f"{program}: 2 of 2 ranks here" in shown
    assert f"rank 1 (pid {pids[1]}, sleeping) is at {program}:8" in shown
    assert re.search(rf"at {program}:9; not arrived: rank 1 \(pid {pids[1]}\)$", shown, re.MULTILINE), shown
    assert "wait for each other" not in shown
    assert waiting["engine"] == "plain, as SHIM_ENGINE says"
    assert "      engine plain, as SHIM_ENGINE says\n" in shown


def test_the_doctor_names_ranks_that_wait_for_each_other(ranks: Callable[[str], str]) -> None:
    program = ranks("""
group = dist.new_group()
print("pid", os.getpid(), flush=True)
dist.barrier(group if rank == 1 else None)
""")
    with start("-n", "2", program, env=environment(SHIM_STALL_WARNING="1")) as process:
        pids = read_pids(process, 2)
        time.sleep(1)
        shown = [doctor("--job", job) for job in (str(pids[1]), program)]
        others = doctor("--job", "no such job")
        process.terminate()
        _, warned = process.communicate(timeout=DEADLINE)
    for text in [*shown, of_rank(0, warned), of_rank(1, warned)]:
        assert (
            "rank 0 waits in group 'world' for rank 1, which waits in group 'group_1' for rank 0: they wait for each other"
            in text
        )
    assert others == "No process of yours on this host is in a group of a job 'no such job'.\n"


def test_the_doctor_shows_a_rank_that_has_left(ranks: Callable[[str], str]) -> None:
    program = ranks("""
dist.destroy_process_group()
print("pid", os.getpid(), flush=True)
time.sleep(60)
""")
    with start("-n", "1", program) as process:
        (pid,) = read_pids(process, 1)
        time.sleep(1)
        shown = doctor()
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert re.search(rf"pid {pid}\b.*: is in no group any more, is at {program}:9\b", shown), shown


def test_the_doctor_says_which_host_cannot_be_asked() -> None:
    command = [
        sys.executable,
        "-m",
        "shim",
        "doctor",
        "--hosts",
        "node7",
        "--ssh",
        "sh -c 'echo no route >&2; exit 255'",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=DEADLINE)
    assert done.returncode == 2
    assert "host node7 could not be asked: sh ended with status 255" in done.stderr
    assert "no route" in done.stderr


def doctor(*options: str) -> str:
    command = [sys.executable, "-m", "shim", "doctor", *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=DEADLINE).stdout


def test_a_stall_warning_that_is_no_time_is_refused(ranks: Callable[[str], str]) -> None:
    done = run("-n", "1", ranks(""), env=environment(SHIM_STALL_WARNING="soon"))
    assert "SHIM_STALL_WARNING must be a number of seconds, 0 for no warning, got 'soon'" in done.stderr
