"""The options of ``shim run`` for several hosts: what is refused, what is told, and what each host is started with."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from shim_run import environment, run, start

from shim.cli.several_hosts import Options
from shim.launch.output import Failure, first_of_all
from shim.launch.remote_hosts import Plan, as_orders

SECRET = "0123456789abcdef"
BY_HAND = ("--nnodes", "2", "--node-rank", "0", "--master", "127.0.0.1:4000")

WHO = """
    import json, os
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
             "SHIM_RANK", "SHIM_WORLD_SIZE", "SHIM_JOB", "SHIM_SECRET", "PADDLE_TRAINER_ID", "DEVICE_ID")
    print(json.dumps({name: os.environ.get(name) for name in names}))
"""


def secret_environment(secret: str = SECRET) -> dict[str, str]:
    return environment(SHIM_SECRET=secret)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nnodes", "2"], "--nnodes needs --node-rank, another on each host, and --master"),
        (["--nnodes", "2", "--node-rank", "1"], "--nnodes needs --node-rank"),
        (["--nnodes", "2", "--node-rank", "2", "--master", "a:1"], "--node-rank must be in 0..1"),
        (["--node-rank", "1"], "--node-rank must be in 0..0"),
        (["--master", "a:1"], "--master needs --nnodes or --hosts"),
        ([*BY_HAND[:-1], "a"], "--master must be HOST:PORT"),
        ([*BY_HAND[:-1], "a:70000"], "--master must be HOST:PORT"),
        ([*BY_HAND, "--max-restarts", "1"], "--max-restarts works on one host only"),
        (["--hosts", "a,b", "--max-restarts", "1"], "--max-restarts works on one host only"),
        (["--hosts", "a,b", "--nnodes", "2"], "--hosts starts all hosts"),
        (["--hosts", "a,,b"], "--hosts must be HOST,..."),
        (["--hosts", "a:x"], "--hosts must be HOST,..."),
        (["--hosts", "-oProxyCommand=x"], "--hosts must be HOST,..."),
        (["--hosts", "a:0"], "1 to 512 ranks to a host, got 'a:0'"),
        (["--hosts", "a,a"], "--hosts names a host twice; give it slots instead, as in a:4"),
        (["--hosts", "localhost,b"], "the other hosts cannot reach the first one as 'localhost'"),
        (["--hosts", "a,b", "--ssh", ""], "--ssh must be a command"),
        (["--hosts", "a,b", "--ssh", "no-such-program"], "no-such-program cannot be started"),
    ],
)
def test_what_cannot_be_started_is_told_at_once(
    options: Sequence[str], words: str, script: Callable[[str], str]
) -> None:
    done = run("-n", "2", *options, script(WHO), env=secret_environment())
    assert done.returncode == (1 if "no-such-program" in words else 2)
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout == ""


@pytest.mark.parametrize(("secret", "words"), [("", "need a secret"), ("short", "at least 16 characters, got 5")])
def test_a_secret_is_needed_and_how_to_make_one_is_told(secret: str, words: str, script: Callable[[str], str]) -> None:
    done = run("-n", "2", *BY_HAND, script(WHO), env=secret_environment(secret))
    told = " ".join(done.stderr.replace("│", " ").split())
    assert done.returncode == 2
    assert words in told
    assert "export SHIM_SECRET=$(openssl rand -hex 16)" in told


def test_hosts_that_are_started_by_hand_make_one_job(script: Callable[[str], str]) -> None:
    program, seen = script(WHO), []
    for number in "01":
        done = run("-n", "2", *BY_HAND[:3], number, *BY_HAND[4:], program, env=secret_environment())
        assert done.returncode == 0, done.stderr
        lines = sorted(done.stdout.splitlines())
        assert [line[:4] for line in lines] == [f"[{2 * int(number) + local}] " for local in range(2)]
        seen += [json.loads(line[4:]) for line in lines]
    assert len({rank["SHIM_JOB"] for rank in seen}) == 1
    for rank, told in enumerate(seen):
        local = str(rank % 2)
        assert told == {
            **{name: str(rank) for name in ("RANK", "SHIM_RANK")},
            **dict.fromkeys(("WORLD_SIZE", "SHIM_WORLD_SIZE"), "4"),
            **dict.fromkeys(("LOCAL_RANK", "DEVICE_ID"), local),
            "LOCAL_WORLD_SIZE": "2",
            "GROUP_RANK": str(rank // 2),
            "GROUP_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "4000",
            "SHIM_JOB": told["SHIM_JOB"],
            "SHIM_SECRET": SECRET,
            "PADDLE_TRAINER_ID": None,  # nobody knows the other host's ports
        }


def test_another_secret_or_address_is_another_job(script: Callable[[str], str]) -> None:
    program = script("import os; print(os.environ['SHIM_JOB'])")
    others = [(SECRET, "127.0.0.1:4000"), (SECRET[::-1], "127.0.0.1:4000"), (SECRET, "127.0.0.1:4001")]
    jobs = {
        run("-n", "1", *BY_HAND[:-1], address, program, env=secret_environment(secret)).stdout
        for secret, address in others
    }
    assert len(jobs) == 3


def options(hosts: str, master: str | None = None) -> Options:
    return Options(2, 1, None, master, hosts, ["ssh"], False)


class TestPlan:
    def test_starts_the_same_program_in_the_same_folder_with_the_same_python(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PYTHONPATH", "/a b")
        plan = options("me@one,two:3").plan(["--", "train.py", "x y"], {"COLOUR": "red"}, False)
        ssh, host, line = plan.command_of(1)
        assert (ssh, host) == ("ssh", "two")
        words = shlex.split(line)
        assert words[: words.index(sys.executable)] == ["cd", str(tmp_path), "&&", "exec", "env", "PYTHONPATH=/a b"]
        started = words[words.index(sys.executable) + 1 :]
        assert started[:4] == ["-m", "shim", "run", "--attached"]
        assert started[4:] == ["--nnodes", "2", "--node-rank", "1", "-n", "3", "--", "train.py", "x y"]

    def test_passes_what_matters_and_shows_it_to_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told = {"SHIM_CHECK": "before", "SHIM_RANK": "7", "SHIM_JOB": "outer", "VIRTUAL_ENV": "/venv", "OTHER": "x"}
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("SHIM_SECRET", raising=False)
        plan = options("one,two").plan(["--", "train.py"], {"TOKEN": "hidden"}, False)
        secret = plan.environment["SHIM_SECRET"]
        assert len(secret) == 32
        passed = {"SHIM_CHECK": "before", "VIRTUAL_ENV": "/venv", "TOKEN": "hidden"}
        assert passed.items() <= plan.environment.items()
        assert not {"SHIM_RANK", "SHIM_JOB", "OTHER"} & set(plan.environment)
        for text in (*plan.command_of(0), repr(plan)):
            assert secret not in text
            assert "hidden" not in text
        assert options("one,two").plan([], {}, False).environment["SHIM_SECRET"] != secret
        monkeypatch.setenv("SHIM_SECRET", SECRET)
        assert options("one,two").plan([], {}, False).environment["SHIM_SECRET"] == SECRET

    @pytest.mark.parametrize(
        ("hosts", "master", "address"),
        [
            ("one,two", None, "one:4000"),
            ("me@one,two", None, "one:4000"),
            ("[fd00::1],[fd00::2]:3", None, "[fd00::1]:4000"),
            ("one,two", "net1", "net1:4000"),
            ("one,two", "net1:5000", "net1:5000"),
            ("localhost", None, "localhost:4000"),
        ],
    )
    def test_ranks_meet_at_the_first_host_unless_told_otherwise(
        self, hosts: str, master: str | None, address: str
    ) -> None:
        plan = options(hosts, master).plan([], {}, False)
        orders = as_orders(plan, [[4000, 4001, 4002], [5000, 5001, 5002, 5003]][: len(plan.hosts)])
        assert orders.address == address

    def test_every_rank_has_an_endpoint(self) -> None:
        plan = Plan(["me@one", "fd00::2"], [2, 1], ["ssh"], [], "one:0", {})
        orders = as_orders(plan, [[1, 2, 3], [4, 5]])
        assert orders.endpoints == ["one:2", "one:3", "[fd00::2]:5"]
        assert orders.counts == [2, 1]


def test_a_cause_is_told_before_its_victims_and_those_that_were_ended() -> None:
    ended, victim, cause = (
        Failure(0, -15, [], was_told_to_end=True),
        Failure(1, 1, [], is_victim=True),
        Failure(2, 1, []),
    )
    assert first_of_all([ended, victim, cause]) is cause
    assert first_of_all([ended, victim]) is victim


def test_options_that_hosts_take_need_no_secret_on_one_host(script: Callable[[str], str]) -> None:
    program = script("import os; print(os.environ.get('SHIM_SECRET'))")
    done = run("-n", "1", "--nnodes", "1", "--node-rank", "0", program)
    assert (done.returncode, done.stdout) == (0, "[0] None\n")


def test_ranks_of_an_attached_run_end_with_whoever_gives_its_orders(script: Callable[[str], str]) -> None:
    """Its other end closes the pipe; ``tests/hosts`` has the rest."""
    with start("-n", "1", "--attached", "--nnodes", "1", "--node-rank", "0", script(WHO)) as process:
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert "ports" in process.stderr.read()
