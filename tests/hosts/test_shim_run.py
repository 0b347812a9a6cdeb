"""``shim run`` on two hosts: each started by hand, and both over what stands in for ssh; how it ends, and what it leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from namespaces import Network

ROOT = Path(__file__).parents[2]
DEADLINE = 40.0  # seconds
SECRET = "0123456789abcdef"

WHO = """
    import json, os, sys
    told = {name: os.environ.get(name) for name in
            ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "SHIM_JOB",
             "SHIM_SECRET", "SHIM_CHECK", "COLOUR", "PADDLE_TRAINER_ENDPOINTS", "OTHER")}
    print(json.dumps(told | {"host": os.uname().nodename, "folder": os.getcwd(), "input": sys.stdin.read(), "arguments": sys.argv[1:]}))
    print("error of", os.environ["RANK"], file=sys.stderr)
"""
SLEEP = """
    import os, signal, sys, time
    def handle(number, frame):
        print("signal", number, flush=True)
        if number == signal.SIGTERM: sys.exit(3)
    for number in (signal.SIGUSR1, signal.SIGTERM): signal.signal(number, handle)
    print("ready", flush=True)
    while True: time.sleep(0.1)
"""
STUBBORN = """
    import signal, subprocess, time
    for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, lambda *_: print("no", flush=True))
    subprocess.Popen(["sleep", "77"])
    print("ready", flush=True)
    while True: time.sleep(0.1)
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHIM_", "MASTER_"))}
    return kept | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "200"} | changes


def shim_run(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "shim", "run", *arguments]


@contextmanager
def start(
    network: Network, *arguments: str, hosts: str = "host0,host1", ssh: str = "", **options: object
) -> Iterator[subprocess.Popen[str]]:
    """Start `shim run` on *hosts*; a test that fails, or waits for too long, kills it."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = shim_run("--hosts", hosts, "--ssh", ssh or network.ssh, *arguments)
    started = subprocess.Popen(command, **{"env": environment(), **pipes, **options})  # type: ignore[call-overload]
    deadline = threading.Timer(DEADLINE, started.kill)
    deadline.start()
    with started as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            deadline.cancel()


def run(network: Network, *arguments: str, hosts: str = "host0,host1", **options: object) -> tuple[int, str, str]:
    """Return the exit status, and both outputs, of `shim run` on *hosts*; nothing may be left on them."""
    with start(network, *arguments, hosts=hosts, **options) as process:
        stdout, stderr = process.communicate(timeout=DEADLINE)
    for host in network.hosts:
        host.assert_empty()
    return process.returncode, stdout, stderr


def wait_for(process: subprocess.Popen[str], line: str, count: int) -> None:
    """Read the output until *count* ranks have printed *line*."""
    assert process.stdout is not None
    while count:
        read = process.stdout.readline()
        assert read, process.stderr and process.stderr.read()
        count -= bool(re.fullmatch(rf"\[\d+\] {line}\n", read))


def test_ranks_are_told_where_they_are(two_hosts: Network, script: Callable[[str], str], tmp_path: Path) -> None:
    told = environment(SHIM_CHECK="before", OTHER="of this host")
    arguments = ("-n", "2", "--env", "COLOUR=dark red", script(WHO), "--flag", "x y")
    status, stdout, stderr = run(two_hosts, *arguments, hosts="host0,host1:1", env=told, cwd=tmp_path)
    assert (status, sorted(stderr.splitlines())) == (0, [f"[{rank}] error of {rank}" for rank in range(3)])
    lines = sorted(stdout.splitlines())
    assert [line[:4] for line in lines] == ["[0] ", "[1] ", "[2] "]
    seen = [json.loads(line[4:]) for line in lines]
    for name in ("MASTER_PORT", "SHIM_JOB", "SHIM_SECRET", "PADDLE_TRAINER_ENDPOINTS"):
        assert len({rank[name] for rank in seen}) == 1
    assert len(seen[0]["SHIM_SECRET"]) == 32
    endpoints = [one.partition(":")[0] for one in seen[0]["PADDLE_TRAINER_ENDPOINTS"].split(",")]
    assert endpoints == ["host0", "host0", "host1"]
    for rank, (local, count, host) in enumerate([(0, 2, 0), (1, 2, 0), (0, 1, 1)]):
        assert seen[rank] == seen[rank] | {
            "RANK": str(rank),
            "WORLD_SIZE": "3",
            "LOCAL_RANK": str(local),
            "LOCAL_WORLD_SIZE": str(count),
            "GROUP_RANK": str(host),
            "MASTER_ADDR": "host0",
            "SHIM_CHECK": "before",
            "COLOUR": "dark red",
            "OTHER": None,  # the host's own environment counts, and has no such variable
            "host": f"host{host}",
            "folder": str(tmp_path),
            "input": "",
            "arguments": ["--flag", "x y"],
        }


def test_the_secret_is_in_no_command_line(two_hosts: Network, script: Callable[[str], str]) -> None:
    with start(two_hosts, "-n", "1", script(SLEEP), env=environment(SHIM_SECRET=SECRET)) as process:
        wait_for(process, "ready", 2)
        commands = b"".join(
            Path(f"/proc/{one}/cmdline").read_bytes()
            for one in [process.pid, *(one for host in two_hosts.hosts for one in host.processes())]
        )
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE)
    assert b"--attached" in commands
    assert SECRET.encode() not in commands


def test_hosts_are_started_by_hand(two_hosts: Network, script: Callable[[str], str]) -> None:
    options = ("-n", "1", "--nnodes", "2", "--master", "10.77.0.1:4000")
    told = environment(SHIM_SECRET=SECRET)
    started = [
        host.popen(
            shim_run(*options, "--node-rank", str(host.number), script(WHO)),
            env=told,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in two_hosts.hosts
    ]
    seen = [json.loads(process.communicate(timeout=DEADLINE)[0].partition(" ")[2]) for process in started]
    assert [(rank["host"], rank["RANK"]) for rank in seen] == [("host0", "0"), ("host1", "1")]
    assert {(rank["MASTER_ADDR"], rank["MASTER_PORT"], rank["SHIM_SECRET"]) for rank in seen} == {
        ("10.77.0.1", "4000", SECRET)
    }
    assert len({rank["SHIM_JOB"] for rank in seen}) == 1


FAIL = """
    import os, sys, time
    if os.environ["RANK"] == "2":
        raise ValueError("what went wrong")
    time.sleep(60)
"""


def test_a_failing_rank_ends_those_of_the_other_host_and_is_told_last(
    two_hosts: Network, script: Callable[[str], str]
) -> None:
    began = time.monotonic()
    status, _, stderr = run(two_hosts, "-n", "2", script(FAIL))
    assert status == 1
    assert time.monotonic() - began < 20
    *_, last = stderr.partition("shim run: ")
    lines = last.splitlines()
    assert lines[0] == "rank 2 failed first: it ended with status 1; what it wrote to stderr last:"
    assert lines[-1] == "[2] ValueError: what went wrong"
    assert stderr.count("failed first") == 1


@pytest.mark.parametrize(
    ("dies", "status", "how"),
    [("sys.exit(7)", 7, "ended with status 7"), ("os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL")],
)
def test_the_exit_status_is_that_of_the_rank_that_failed(
    two_hosts: Network, script: Callable[[str], str], dies: str, status: int, how: str
) -> None:
    program = script(FAIL.replace('raise ValueError("what went wrong")', dies))
    found, _, stderr = run(two_hosts, "-n", "2", program)
    assert (found, stderr) == (
        status,
        f"shim run: rank 2 failed first: it {how}, and wrote nothing to stderr\n",
    )


def test_the_cause_is_told_and_not_its_victims_on_the_other_host(
    two_hosts: Network, script: Callable[[str], str]
) -> None:
    program = script("""
        import os, sys, time
        from shim.errors import PeerLostError
        if os.environ["RANK"] == "0":
            raise PeerLostError("rank 1 is gone")   # its host is the first to tell
        time.sleep(0.5)
        raise ValueError("the cause")
    """)
    status, _, stderr = run(two_hosts, "-n", "1", program)
    assert status == 1
    assert "shim run: rank 1 failed first" in stderr
    assert stderr.endswith("[1] ValueError: the cause\n")


def test_others_go_on_where_they_are_to(two_hosts: Network, script: Callable[[str], str]) -> None:
    program = script("""
        import os, sys, time
        if os.environ["RANK"] == "1":
            sys.exit(5)
        time.sleep(2)
        print("went on", flush=True)
    """)
    status, stdout, stderr = run(two_hosts, "-n", "1", "--keep-going", program)
    assert (status, stdout) == (5, "[0] went on\n")
    assert "shim run: rank 1 ended with status 5; the others go on" in stderr


def test_signals_reach_all_ranks(two_hosts: Network, script: Callable[[str], str]) -> None:
    with start(two_hosts, "-n", "2", script(SLEEP)) as process:
        wait_for(process, "ready", 4)
        process.send_signal(signal.SIGUSR1)
        wait_for(process, f"signal {signal.SIGUSR1.value}", 4)
        process.send_signal(signal.SIGTERM)
        wait_for(process, f"signal {signal.SIGTERM.value}", 4)
        assert process.wait(DEADLINE) == 3
        assert process.stderr is not None
        assert process.stderr.read() == ""
    for host in two_hosts.hosts:
        host.assert_empty(within=1.0)


def test_a_signal_that_comes_before_the_ranks_reaches_them(two_hosts: Network, script: Callable[[str], str]) -> None:
    slow = f"sh -c 'sleep 1; exec \"$@\"' slow {two_hosts.ssh}"
    with start(two_hosts, "-n", "1", script("import time; time.sleep(60)"), ssh=slow) as process:
        while not list(children_of(process.pid)):
            time.sleep(0.05)
        process.send_signal(signal.SIGUSR1)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGUSR1, stderr
    for host in two_hosts.hosts:
        host.assert_empty(within=1.0)


def test_ctrl_c_ends_the_ranks_and_so_the_command(two_hosts: Network, script: Callable[[str], str]) -> None:
    with start(two_hosts, "-n", "1", script("import time; print('ready', flush=True); time.sleep(60)")) as process:
        wait_for(process, "ready", 2)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGINT
    assert stderr.count("KeyboardInterrupt") == 2
    for host in two_hosts.hosts:
        host.assert_empty(within=1.0)


def test_ranks_that_do_not_end_are_killed_after_the_second_ctrl_c(
    two_hosts: Network, script: Callable[[str], str]
) -> None:
    with start(two_hosts, "-n", "1", script(STUBBORN)) as process:
        wait_for(process, "ready", 2)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            wait_for(process, "no", 2)
        began = time.monotonic()
        process.communicate(timeout=DEADLINE)
        assert 3 < time.monotonic() - began < 9
    assert process.returncode == 128 + signal.SIGKILL
    for host in two_hosts.hosts:
        host.assert_empty(within=1.0)


@pytest.mark.parametrize("whose", ["shim run", "ssh"])
def test_nothing_is_left_when_it_is_killed(two_hosts: Network, script: Callable[[str], str], whose: str) -> None:
    with start(two_hosts, "-n", "2", script(STUBBORN)) as process:
        wait_for(process, "ready", 4)
        killed = process.pid if whose == "shim run" else child_of(process.pid, "host1")
        os.kill(killed, signal.SIGKILL)
        for host in two_hosts.hosts[1:] if whose == "ssh" else two_hosts.hosts:
            host.assert_empty(within=2.0)
        _, stderr = process.communicate(timeout=DEADLINE)
    if whose == "ssh":
        assert process.returncode == 1
        assert "the connection to host host1 is lost: " in stderr
    for host in two_hosts.hosts:
        host.assert_empty(within=1.0)


def children_of(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def child_of(process: int, word: str) -> int:
    """Return the child of *process* whose last argument but one is *word*."""
    for child in children_of(process):
        if Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[-3] == word.encode():
            return child
    raise AssertionError(f"no child of {process} for {word}")


def test_a_host_that_ssh_does_not_reach_is_told_with_its_words(
    two_hosts: Network, script: Callable[[str], str]
) -> None:
    status, stdout, stderr = run(two_hosts, "-n", "1", script(WHO), hosts="host0,nowhere")
    assert (status, stdout) == (1, "")
    assert stderr.startswith("shim run: the ranks of host nowhere cannot be started: ")
    assert "ended with status 255; it wrote:\nssh: Could not resolve hostname nowhere" in stderr


def test_a_host_without_the_program_is_told(two_hosts: Network) -> None:
    status, _, stderr = run(two_hosts, "-n", "1", "absent.py")
    assert status == 2
    assert re.search(r"the ranks of host host[01] cannot be started: ", stderr)
    assert "there is no script 'absent.py'" in stderr


def test_a_host_that_does_not_answer_can_be_given_up(two_hosts: Network, script: Callable[[str], str]) -> None:
    with start(two_hosts, "-n", "1", script(WHO), ssh="sh -c 'sleep 60' silent") as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=10)
    assert (process.returncode, stderr) == (128 + signal.SIGINT, "")


def test_ranks_end_when_nobody_gives_orders_any_more(
    two_hosts: Network, script: Callable[[str], str], tmp_path: Path
) -> None:
    """A host that is cut off sees no end of its connection, but hears nothing."""
    short = tmp_path / "sitecustomize.py"
    short.write_text("import shim.launch.orders as orders; orders.SILENCE = 3.0")
    told = environment(PYTHONPATH=f"{tmp_path}:{ROOT}")
    with start(two_hosts, "-n", "1", script(STUBBORN), env=told) as process:
        wait_for(process, "ready", 2)
        time.sleep(4)
        assert all(host.processes() for host in two_hosts.hosts)  # it is heard while it is there
        process.send_signal(signal.SIGSTOP)
        for host in two_hosts.hosts:
            host.assert_empty(within=8.0)
        process.send_signal(signal.SIGCONT)
        _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert "shim run: nothing was heard for 3 s from who started this on host1; the ranks are killed" in stderr
