"""How ``shim run`` ends: ranks that fail, signals, and whoever reads the output going away."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from shim_run import DEADLINE, assert_gone, read_pids, run, start


def test_a_failing_rank_ends_the_others_and_its_traceback_comes_last(script: Callable[[str], str]) -> None:
    program = script("""
        import os, time
        print("pid", os.getpid())
        if os.environ["RANK"] == "1":
            try:
                {}["missing"]
            except KeyError as error:
                raise ValueError("what went wrong") from error
        time.sleep(60)
    """)
    began = time.monotonic()
    done = run("-n", "3", program)
    assert done.returncode == 1
    assert time.monotonic() - began < 30
    pids = [int(line.split()[-1]) for line in done.stdout.splitlines()]
    assert len(pids) == 3
    assert_gone(pids)
    *_, last = done.stderr.partition("shim run: ")
    lines = last.splitlines()
    assert lines[0] == "rank 1 failed first: it ended with status 1; what it wrote to stderr last:"
    assert lines[1] == "[1] Traceback (most recent call last):"
    assert "[1] KeyError: 'missing'" in lines
    assert lines[-1] == "[1] ValueError: what went wrong"
    assert all(line.startswith("[1] ") for line in lines[1:])


def test_the_cause_is_told_and_not_the_ranks_it_pulled_down(script: Callable[[str], str]) -> None:
    program = script("""
        import time
        import numpy as np
        import shim.frontends.torch.distributed as dist
        dist.init_process_group()
        if dist.get_rank() == 1:
            import atexit
            atexit.register(time.sleep, 0.5)  # its process ends after those of the others
            raise ValueError("the cause")
        dist.all_reduce(np.ones(1))
    """)
    done = run("-n", "3", program)
    assert done.returncode == 1
    assert (
        done.stderr.count("shim.errors.PeerLostError") == 1
    )  # both survivors had the time to say so, and said the same
    assert re.search(r"^shim run: rank [02]: the same$", done.stderr, re.MULTILINE), done.stderr
    assert f"{os.sep}shim{os.sep}core{os.sep}" not in done.stderr
    assert f"{os.sep}shim{os.sep}frontends{os.sep}" not in done.stderr
    assert "shim run: rank 1 failed first" in done.stderr
    assert done.stderr.endswith("[1] ValueError: the cause\n")


def test_each_traceback_is_shown_once_without_our_frames_and_that_of_the_first_at_the_end(
    script: Callable[[str], str], tmp_path: Path
) -> None:
    program = script("""
        import os
        import numpy as np
        import shim.frontends.torch.distributed as dist
        dist.init_process_group()
        if os.environ["RANK"] == "3":
            raise KeyError("another")
        dist.broadcast(np.ones(3), src=7)
    """)
    done = run("-n", "4", "--log-dir", str(tmp_path / "logs"), program)
    assert (done.stderr.count("KeyError: "), done.stderr.count("RankError: ")) == (1, 1)
    places = re.findall(r" File (.*)", done.stderr)
    assert sorted(places) == [f'"{program}", line 7, in <module>', f'"{program}", line 8, in <module>']
    assert len(re.findall(r"^shim run: ranks [0-2], [0-2]: the same$", done.stderr, re.MULTILINE)) == 1
    *_, last = re.split(r"^shim run: rank \d failed first.*\n", done.stderr, flags=re.MULTILINE)
    assert last.startswith("[")
    assert last.count("Traceback") == 1
    assert "_collectives.py" in (tmp_path / "logs/rank0.stderr").read_text()  # all of it


def test_ranks_that_fail_beside_others_that_go_on_are_told_at_once_the_same_once(script: Callable[[str], str]) -> None:
    done = run("-n", "2", "--keep-going", script("raise ValueError('each rank has it')"))
    at_once, _, last = re.split(r"shim run: rank (\d) failed first", done.stderr)
    assert (at_once.count("Traceback"), last.count("Traceback")) == (1, 1)
    shown = int(at_once[1])
    assert f"shim run: rank {shown} ended with status 1; the others go on\n" in at_once
    told = f"shim run: rank {1 - shown} ended with status 1, with the traceback of rank {shown}; the others go on\n"
    assert at_once.endswith(told)
    assert re.search(r"shim run: rank [01]: the same\n$", last)


def test_a_traceback_of_a_rank_that_goes_on_is_shown_after_a_while(script: Callable[[str], str]) -> None:
    program = script("""
        import sys, time, traceback
        try:
            1 / 0
        except ZeroDivisionError:
            traceback.print_exc()
        print("pid 0")
        time.sleep(60)
    """)
    with start("-n", "1", program) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(5)]
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert lines[0] == "[0] Traceback (most recent call last):\n"
    assert any("ZeroDivisionError" in line for line in lines)


def test_an_exception_that_is_ignored_is_not_the_one_that_ended_a_rank(script: Callable[[str], str]) -> None:
    program = script("""
        import os
        class Loader:
            def __del__(self):
                raise KeyError("as it goes")
        if os.environ["RANK"] == "1":
            kept = Loader()
        raise ValueError(f"what went wrong on {os.environ['RANK']}")
    """)
    done = run("-n", "2", program)
    assert "KeyError: 'as it goes'" in done.stderr
    *_, last = done.stderr.partition("shim run: ")
    assert "failed first" in last
    assert "ValueError: what went wrong on" in last.splitlines()[-1]
    assert "ignored" not in last
    assert "KeyError" not in last


def test_with_keep_going_the_survivors_go_on_without_the_lost_rank(script: Callable[[str], str]) -> None:
    program = script("""
        import os, signal, time
        import numpy as np
        import shim
        import shim.frontends.torch.distributed as dist
        dist.init_process_group()
        mine = np.full(3, dist.get_rank() + 1.0)
        if dist.get_rank() == 1: os.kill(os.getpid(), signal.SIGKILL)
        try:
            dist.all_reduce(mine.copy())
        except shim.errors.PeerLostError:
            group = dist.shrink_group(sorted({*range(dist.get_world_size())} - {*shim.survivors()}))
        time.sleep(1.5)  # longer than the ranks have where they are ended
        dist.all_reduce(mine, group=group)
        print("sum", mine.tolist())
        world, shrunk = shim.explain().splitlines()
        assert "; lost: rank 1's process (pid " in world and "was killed by SIGKILL" in world, world
        assert world.endswith(" ms ago; this group can no longer be used"), world
        assert "lost" not in shrunk and "no longer" not in shrunk, shrunk
    """)
    done = run("-n", "3", "--keep-going", program)
    assert sorted(done.stdout.splitlines()) == ["[0] sum [4.0, 4.0, 4.0]", "[2] sum [4.0, 4.0, 4.0]"]
    assert done.returncode == 128 + signal.SIGKILL  # the rank has failed, whatever the others made of it
    assert "shim run: rank 1 was killed by SIGKILL; the others go on\n" in done.stderr
    assert "shim run: rank 1 failed first: it was killed by SIGKILL" in done.stderr


RESTARTED = """
    import os, sys, time
    rank, restart, job = (os.environ[name] for name in ("RANK", "TORCHELASTIC_RESTART_COUNT", "SHIM_JOB"))
    print("start", restart, "of", os.environ["TORCHELASTIC_MAX_RESTARTS"], job, os.environ["TORCHELASTIC_RUN_ID"])
    if rank == "1" and int(restart) < int(sys.argv[1]): sys.exit(7)
    if int(restart) < int(sys.argv[1]): time.sleep(60)
"""


@pytest.mark.parametrize(("failures", "restarts", "status"), [(1, 2, 0), (2, 1, 7)])
def test_all_ranks_are_started_again_so_often(
    failures: int, restarts: int, status: int, script: Callable[[str], str], tmp_path: Path
) -> None:
    done = run("-n", "2", f"--max-restarts={restarts}", "--log-dir", str(tmp_path), script(RESTARTED), str(failures))
    attempts = min(failures, restarts) + 1
    assert done.returncode == status
    lines = [line.split() for line in sorted(done.stdout.splitlines())]
    assert [line[:5] for line in lines] == [
        [f"[{rank}]", "start", str(attempt), "of", str(restarts)] for rank in range(2) for attempt in range(attempts)
    ]
    assert len({line[5] for line in lines}) == attempts  # each has a job of its own
    assert len({line[6] for line in lines}) == 1  # of one run
    assert done.stderr.count("shim run: rank 1 failed first: it ended with status 7") == attempts - (status == 0)
    assert done.stderr.count("shim run: all ranks are started again") == attempts - 1
    for rank in range(2):  # a log has all that the rank has written
        logged = (tmp_path / f"rank{rank}.stdout").read_text().splitlines()
        assert [f"[{rank}] {line}" for line in logged] == [" ".join(line) for line in lines if line[0] == f"[{rank}]"]


def test_ranks_that_were_told_to_end_are_not_started_again(script: Callable[[str], str]) -> None:
    program = script("import os, time; print('pid', os.getpid()); time.sleep(60)")
    with start("-n", "2", "--max-restarts", "3", program) as process:
        read_pids(process, 2)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=DEADLINE)
    assert (process.returncode, stdout, stderr) == (128 + signal.SIGTERM, "", "")


def test_a_rank_that_only_speaks_of_a_lost_peer_is_a_cause(script: Callable[[str], str]) -> None:
    program = script("""
        import os, pathlib, select, time
        handle = pathlib.Path(__file__).with_name("handle")
        if os.environ["RANK"] == "1":
            handle.with_name("unfinished").write_text(str(os.getpid()))
            handle.with_name("unfinished").rename(handle)
            time.sleep(1)  # until it is watched
            raise ValueError("no PeerLostError: this rank's own")
        while not handle.exists(): time.sleep(0.01)
        select.select([os.pidfd_open(int(handle.read_text()))], [], [])
        raise KeyError("a second")
    """)
    done = run("-n", "2", program)
    assert "KeyError: 'a second'" in done.stderr
    assert "shim run: rank 1 failed first" in done.stderr


@pytest.mark.parametrize(
    ("ending", "status", "how"),
    [
        ("sys.exit(7)", 7, "ended with status 7, and wrote nothing to stderr"),
        ("os._exit(9)", 9, "ended with status 9"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, "was killed by SIGKILL"),
        ("os.abort()", 128 + signal.SIGABRT, "was killed by SIGABRT"),
    ],
)
def test_the_exit_status_is_that_of_the_failing_rank(
    ending: str, status: int, how: str, script: Callable[[str], str]
) -> None:
    program = script(f"""
        import os, signal, sys, time
        if os.environ["RANK"] == "2": {ending}
        time.sleep(60)
    """)
    done = run("-n", "3", program)
    assert done.returncode == status
    assert f"shim run: rank 2 failed first: it {how}" in done.stderr


def test_a_lone_rank_s_traceback_is_shown_once(script: Callable[[str], str]) -> None:
    done = run("-n", "1", script("raise ValueError('once')"))
    assert done.returncode == 1
    assert done.stderr.count("ValueError: once") == 1
    assert done.stderr.endswith("[0] ValueError: once\nshim run: rank 0 ended with status 1\n")


def test_ranks_that_will_not_end_are_killed(script: Callable[[str], str]) -> None:
    program = script("""
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: print("asked to end"))
        print("pid", os.getpid())
        if os.environ["RANK"] == "0":
            time.sleep(0.5)
            sys.exit(3)
        until = time.monotonic() + 60
        while time.monotonic() < until: time.sleep(1)
    """)
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        stdout, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 3
    assert stdout == "[1] asked to end\n"
    assert_gone(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_signals_are_passed_on(number: signal.Signals, script: Callable[[str], str]) -> None:
    program = script(f"""
        import os, signal, sys, time
        def handle(number, frame):
            print("got", signal.Signals(number).name)
            sys.exit(0)
        signal.signal({int(number)}, handle)
        print("pid", os.getpid())
        for _ in range(600):
            time.sleep(0.1)  # Python handles a signal that comes right before a sleep when that ends
    """)
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=DEADLINE)
    assert sorted(stdout.splitlines()) == [f"[0] got {number.name}", f"[1] got {number.name}"]
    assert (process.returncode, stderr) == (0, "")
    assert_gone(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_ranks_is_in_the_exit_status(
    number: signal.Signals, script: Callable[[str], str]
) -> None:
    program = script("import os, time; print('pid', os.getpid()); time.sleep(60)")
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + number
    assert "failed first" not in stderr
    assert_gone(pids)


def test_a_stopped_rank_ends_when_it_is_told_to(script: Callable[[str], str]) -> None:
    program = script("import os, signal; print('pid', os.getpid()); os.kill(os.getpid(), signal.SIGSTOP)")
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        wait_until_stopped(pids)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGTERM
    assert_gone(pids)


def wait_until_stopped(pids: Sequence[int]) -> None:
    until = time.monotonic() + DEADLINE
    for pid in pids:
        while Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < until, f"{pid} does not stop"
            time.sleep(0.01)


def test_a_second_signal_ends_ranks_that_do_not_heed_the_first(script: Callable[[str], str]) -> None:
    program = script("""
        import os, signal, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("pid", os.getpid())
        time.sleep(60)
    """)
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGKILL
    assert_gone(pids)


def test_ranks_and_what_they_started_end_with_a_failing_job(script: Callable[[str], str]) -> None:
    program = script("""
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print("pid", child.pid)
        if os.environ["RANK"] == "0": sys.exit(1)
        time.sleep(60)
    """)
    with start("-n", "2", program) as process:
        pids = read_pids(process, 2)
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert_gone(pids)


def test_ranks_die_when_the_launcher_is_killed(script: Callable[[str], str]) -> None:
    program = script("import os, time; print('pid', os.getpid()); time.sleep(60)")
    with start("-n", "3", program) as process:
        pids = read_pids(process, 3)
        process.kill()
        process.wait(DEADLINE)
        assert_gone(pids)


def test_ranks_end_when_nobody_reads_their_output(script: Callable[[str], str]) -> None:
    program = script("""
        import os
        print("pid", os.getpid())
        while True: print("words")
    """)
    with start("-n", "1", program) as process:
        pids = read_pids(process, 1)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(DEADLINE) == 128 + signal.SIGPIPE
        assert_gone(pids)


@pytest.mark.parametrize(
    ("redirected", "status", "told"), [(">/dev/full", 1, "No space left on device"), (">&-", 0, "")]
)
def test_output_that_cannot_be_written(script: Callable[[str], str], redirected: str, status: int, told: str) -> None:
    """What is closed when the command begins is nowhere: no file of the command's own may get its number."""
    program = script("print('words')")
    command = f"exec {shlex.quote(sys.executable)} -m shim run -n 2 {shlex.quote(program)} {redirected}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
