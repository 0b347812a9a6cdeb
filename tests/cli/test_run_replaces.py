"""``shim run --replace``: ranks that fail are started again alone, and meet the others once more."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from shim_run import DEADLINE, read_pids, run, start

EXAMPLE = Path(__file__).parents[2] / "examples" / "training" / "replaced_ranks.py"

FAILING = """
    import os, pathlib, sys, time
    rank, times = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    print("start", times, os.environ["SHIM_JOB"], flush=True)
    if rank == "1" and times < int(sys.argv[1]): raise ValueError(f"failure {times}")
    is_done = pathlib.Path(__file__).with_name("is-done")
    if rank == "1": is_done.touch()
    while not is_done.exists(): time.sleep(0.01)
"""

# As torch and DDP write it, and as another rank's failure it is no failure of its own.
VICTIM = """
    import os, sys
    rank, times = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    print("start", times, flush=True)
    if times == 0: raise ValueError("its own")
    if times < 2:
        print(f"[rank{rank}]: Traceback (most recent call last):", file=sys.stderr)
        print(f"[rank{rank}]: RuntimeError: Got the following error when running the callback: PeerLostError: all_reduce: it died",
              *[f"[rank{rank}]:   {number}" for number in range(12)], sep="\\n", file=sys.stderr)
        os._exit(1)
"""


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_rank_takes_part_again(victim: int, script: Callable[[str], str]) -> None:
    program = script(f"""
        import os, runpy, sys, time
        steps, sleep = 0, time.sleep
        def computes(seconds):
            global steps
            steps += 1
            if os.environ["RANK"] == "{victim}" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and steps == 20: os.kill(os.getpid(), 9)
            sleep(seconds)
        time.sleep = computes
        sys.argv[1:] = ["40", "0.01"]
        runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
    """)
    done = run("-n", "3", "--replace", "2", program)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"shim run: rank {victim} was killed by SIGKILL; it is started again (1 of 2)\n"
    for rank in range(3):
        meetings = "1 meeting" if rank == victim else "2 meetings"
        assert f"[{rank}] 40 steps done, in {meetings}\n" in done.stdout


def test_so_many_failures_are_allowed(script: Callable[[str], str], tmp_path: Path) -> None:
    done = run("-n", "2", "--replace", "2", "--log-dir", str(tmp_path), script(FAILING), "2")
    assert done.returncode == 0
    starts = [line.split() for line in done.stdout.splitlines() if line.startswith("[1]")]
    assert [line[2] for line in starts] == ["0", "1", "2"]
    assert len({line[3] for line in starts}) == 1  # it is the same job, whose other ranks go on
    assert done.stdout.count("[0] start 0") == done.stdout.count("[0]") == 1
    for number in range(2):
        assert f"shim run: rank 1 ended with status 1; it is started again ({number + 1} of 2)" in done.stderr
        assert done.stderr.count(f"[1] ValueError: failure {number}") == 1
    assert (tmp_path / "rank1.stdout").read_text().count("start") == 3


def test_one_failure_more_ends_the_job(script: Callable[[str], str]) -> None:
    done = run("-n", "2", "--replace", "1", script(FAILING), "9")
    assert done.returncode == 1
    assert done.stderr.count("it is started again") == 1
    assert "shim run: rank 1 ended with status 1; it is not started again (1 of 1 were)" in done.stderr
    assert "shim run: rank 1 failed first: it ended with status 1; what it wrote to stderr last:" in done.stderr
    assert done.stderr.endswith("[1] ValueError: failure 1\n")


def test_those_that_only_lost_another_do_not_count(script: Callable[[str], str]) -> None:
    done = run("-n", "1", "--replace", "1", script(VICTIM))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("it is started again (1 of 1)") == 1
    assert done.stderr.count("it is started again (because another one failed)") == 1
    assert "[rank0]" not in done.stderr  # shim run's own prefix says it


def test_a_rank_that_is_replaced_gets_no_signal_of_before(script: Callable[[str], str]) -> None:
    program = script("""
        import os, signal, sys, time
        signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7)) if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else None
        print("pid", os.getpid(), flush=True)
        time.sleep(60 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0.5)
    """)
    with start("-n", "1", "--replace", "1", program) as process:
        read_pids(process, 1)
        process.send_signal(signal.SIGUSR1)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert (process.returncode, stderr) == (0, "shim run: rank 0 ended with status 7; it is started again (1 of 1)\n")


def test_a_rank_whose_child_goes_on_writing_is_replaced(script: Callable[[str], str]) -> None:
    program = script("""
        import os, subprocess, sys, time
        if os.environ["TORCHELASTIC_RESTART_COUNT"] < "9":
            subprocess.Popen([sys.executable, "-c", "while True: print('x' * 1000, flush=True)"])
            os._exit(3)
        time.sleep(0.5)  # or the other one would be started as this one has ended
    """)
    done = run("-n", "2", "--replace", "50", program)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("it is started again") == 18


def test_what_a_rank_logs_before_its_own_end_is_no_excuse(script: Callable[[str], str]) -> None:
    program = script("""
        import sys, traceback
        import shim.errors
        try: raise shim.errors.PeerLostError("all_reduce: another rank died")
        except shim.errors.PeerLostError: traceback.print_exc()
        print("[rank0]: a line of the program's own", flush=True)
        sys.exit("the loss is NaN")
    """)
    done = run("-n", "1", "--replace", "2", program)
    assert done.returncode == 1
    assert done.stderr.count("it is started again") <= 4
    assert "[0] [rank0]: a line of the program's own" in done.stdout


def test_a_killed_rank_counts_whatever_it_wrote_before(script: Callable[[str], str]) -> None:
    program = script("""
        import os, traceback
        import shim.errors
        try: raise shim.errors.PeerLostError("all_reduce: another rank died")
        except shim.errors.PeerLostError: traceback.print_exc()
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": os.kill(os.getpid(), 9)
    """)
    done = run("-n", "1", "--replace", "1", program)
    assert "rank 0 was killed by SIGKILL; it is started again (1 of 1)" in done.stderr


def test_nobody_is_started_once_a_rank_has_ended_well(script: Callable[[str], str]) -> None:
    program = script("""
        import os, time
        if os.environ["RANK"] == "1":
            time.sleep(1)
            os._exit(3)
    """)
    done = run("-n", "2", "--replace", "5", program)
    assert (done.returncode, "it is started again" in done.stderr) == (3, False)


def test_who_is_started_as_the_others_end_is_ended_too(script: Callable[[str], str]) -> None:
    program = script("""
        import os, pathlib, time
        is_failed = pathlib.Path(__file__).with_name("is-failed")
        if os.environ["RANK"] == "1":
            if is_failed.exists(): time.sleep(60)  # for a meeting to which nobody comes
            is_failed.touch()
            os._exit(3)
        while not is_failed.exists(): time.sleep(0.01)
        time.sleep(0.05)
    """)
    done = run("-n", "3", "--replace", "1", program)
    assert "shim run: rank 1 was started again as the others ended; it would find nobody, and is ended" in done.stderr
    assert done.returncode == 1


def test_nobody_is_started_after_a_signal(script: Callable[[str], str]) -> None:
    program = script("import os, time; print('pid', os.getpid()); time.sleep(60)")
    with start("-n", "2", "--replace", "3", program) as process:
        read_pids(process, 2)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=DEADLINE)
    assert (process.returncode, stdout, stderr) == (128 + signal.SIGTERM, "", "")
