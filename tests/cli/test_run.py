"""``shim run`` as a user meets it: a command with two streams and an exit status."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0  # seconds

WHO = """
    import os, sys
    print(os.environ["SHIM_RANK"], os.environ["SHIM_WORLD_SIZE"], sys.argv[1:])
    print("error of", os.environ["SHIM_RANK"], file=sys.stderr)
"""


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "MASTER_PORT")}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"} | changes


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def start(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shim", "run", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() if env is None else env,
        cwd=cwd,
    )


def run(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    with start(*arguments, env=env, cwd=cwd) as process:
        try:
            stdout, stderr = process.communicate(timeout=DEADLINE)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def read_pids(process: subprocess.Popen[str], size: int) -> list[int]:
    """Return the process ids that *size* ranks print, in rank order."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(size)]
    found = [re.fullmatch(r"\[(\d+)\] pid (\d+)\n", line) for line in lines]
    pids = {int(match[1]): int(match[2]) for match in found if match}
    return [pids[rank] for rank in range(size)]


def assert_gone(pids: Sequence[int], within: float = 5.0) -> None:
    """Fail unless all processes have ended within so many seconds."""
    until = time.monotonic() + within
    while alive := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"still running: {alive}"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_rank_runs_the_program_and_its_lines_keep_their_stream(size: int, script: Callable[[str], str]) -> None:
    done = run("-n", str(size), script(WHO), "--flag", "-n", "7", "--", "x y")
    given = ["--flag", "-n", "7", "--", "x y"]
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] {rank} {size} {given}" for rank in range(size)]
    assert sorted(done.stderr.splitlines()) == [f"[{rank}] error of {rank}" for rank in range(size)]


def test_options_may_be_parted_from_the_program_by_two_dashes(script: Callable[[str], str]) -> None:
    done = run("-n", "1", "--", script(WHO), "--flag")
    assert (done.returncode, done.stdout) == (0, "[0] 0 1 ['--flag']\n")


def test_a_module_is_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "module.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    done = run("-n", "2", "-m", "package.module", "--flag", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] __main__ package ['--flag']" for rank in range(2)]


def test_the_environment_tells_a_rank_what_scripts_for_torchrun_look_for(script: Callable[[str], str]) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS", "COLOUR")
    program = script(
        f"import os; print([os.environ.get(name) for name in {names}], int(os.environ['MASTER_PORT']) > 0)"
    )
    done = run("-n", "2", "--env", "COLOUR=a=b", program)
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}] {[str(rank), '2', str(rank), '2', '127.0.0.1', '1', 'a=b']} True" for rank in range(2)
    ]


def test_threads_and_address_that_are_set_are_kept(script: Callable[[str], str]) -> None:
    program = script("import os; print(*[os.environ[n] for n in ('OMP_NUM_THREADS', 'MASTER_ADDR', 'MASTER_PORT')])")
    done = run("-n", "2", program, env=environment(OMP_NUM_THREADS="3", MASTER_ADDR="localhost", MASTER_PORT="7"))
    assert sorted(done.stdout.splitlines()) == ["[0] 3 localhost 7", "[1] 3 localhost 7"]


def test_lines_stay_whole_whatever_pieces_they_are_written_in(script: Callable[[str], str]) -> None:
    program = script("""
        import os, time
        rank = os.environ["RANK"]
        for number in range(50):
            for piece in (f"{rank}:", str(number), "," + "x" * 3000, "\\n"):
                os.write(1, piece.encode())
                if number % 10 == 0: time.sleep(0.001)
        os.write(1, b"no newline at the end")
    """)
    done = run("-n", "2", program)
    for rank in range(2):
        mine = [line for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
        expected = [f"[{rank}] {rank}:{number},{'x' * 3000}" for number in range(50)]
        assert mine == [*expected, f"[{rank}] no newline at the end"]
    assert len(done.stdout.splitlines()) == 102


def test_output_appears_when_it_is_printed(script: Callable[[str], str]) -> None:
    program = script("import time; print('early'); time.sleep(60)")
    with start("-n", "1", program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[0] early\n"
        process.terminate()
        assert process.wait(DEADLINE) == 128 + signal.SIGTERM


def test_only_rank_0_reads_the_input(script: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "input").write_text("some words")
    program = script("import os, sys; print(os.environ['RANK'], repr(sys.stdin.read()))")
    command = [sys.executable, "-m", "shim", "run", "-n", "2", program]
    with open(tmp_path / "input") as words:
        done = subprocess.run(command, stdin=words, capture_output=True, text=True, env=environment(), timeout=DEADLINE)
    assert sorted(done.stdout.splitlines()) == ["[0] 0 'some words'", "[1] 1 ''"]


def test_the_rank_is_coloured_on_a_terminal(script: Callable[[str], str]) -> None:
    terminal, end = pty.openpty()
    variables = environment()
    del variables["NO_COLOR"]
    command = [sys.executable, "-m", "shim", "run", "-n", "2", script(WHO)]
    done = subprocess.run(command, stdout=end, stderr=subprocess.PIPE, text=True, env=variables, timeout=DEADLINE)
    os.close(end)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    colours = re.findall(r"\x1b\[(\d+)m\[(\d)\]\x1b\[0m \d 2 \[\]", shown)
    assert sorted(rank for _, rank in colours) == ["0", "1"]
    assert len({colour for colour, _ in colours}) == 2
    assert sorted(done.stderr.splitlines()) == ["[0] error of 0", "[1] error of 1"]


def test_log_files_hold_each_stream_of_each_rank_as_it_was(script: Callable[[str], str], tmp_path: Path) -> None:
    done = run("-n", "2", "--log-dir", str(tmp_path / "new" / "logs"), script(WHO))
    assert done.returncode == 0
    logs = {path.name: path.read_text() for path in (tmp_path / "new" / "logs").iterdir()}
    assert logs == {
        **{f"rank{rank}.stdout": f"{rank} 2 []\n" for rank in range(2)},
        **{f"rank{rank}.stderr": f"error of {rank}\n" for rank in range(2)},
    }
    assert sorted(done.stdout.splitlines()) == ["[0] 0 2 []", "[1] 1 2 []"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'SCRIPT'"),
        (("program.py",), "Missing option '-n'"),
        (("-n", "0", "program.py"), "-n must be at least 1, got 0"),
        (("-n", "-2", "program.py"), "-n must be at least 1, got -2"),
        (("-n", "two", "program.py"), "Invalid value for '-n'"),
        (("-n", "2"), "Missing argument 'SCRIPT'"),
        (("-n", "2", "absent.py"), "there is no script 'absent.py'"),
        (("-n", "2", "absent"), "`-m absent` runs a module"),
        (("-n", "2", "--unknown", "program.py"), "No such option: --unknown"),
        (("-n", "2", "--env", "NAME", "."), "--env must be NAME=VALUE, got 'NAME'"),
        (("-n", "2", "--env", "RANK=1", "."), "--env cannot set RANK"),
        (("-n", "2", "--log-dir", "/dev/null/logs", "."), "--log-dir: "),
    ],
)
def test_wrong_usage_is_explained_and_has_status_2(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


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
    assert done.stderr.count("PeerLostError") == 2  # both survivors had the time to say so
    assert "shim run: rank 1 failed first" in done.stderr
    assert done.stderr.endswith("[1] ValueError: the cause\n")


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
        time.sleep(60)
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


def test_help_tells_how_programs_get_their_arguments() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "Options of `shim run` come before SCRIPT" in " ".join(done.stdout.split())
