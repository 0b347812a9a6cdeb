"""What ranks of several hosts are told of ranks, hosts and links that are lost, and of a job that is started wrongly; nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from namespaces import Network
from starting import environment, finish, mpirun, shim_run

pytest.importorskip("torch", reason="gloo is torch's")

PROGRAM = str(Path(__file__).with_name("losses_across.py"))
DEADLINE = 60.0  # seconds
SECRETS = ("0123456789abcdef", "fedcba9876543210")
Seen = dict[int, dict[str, Any]]


def assert_empty(network: Network) -> None:
    for host in network.hosts:
        host.assert_empty()


@contextmanager
def ranks_in(network: Network, what: str, folder: Path, library: str = "gloo") -> Iterator[dict[int, int]]:
    """Have two ranks on each of two hosts at it: their processes by rank. They have to end by themselves in the end."""
    start = shim_run if library == "gloo" else mpirun
    options = {"options": ["--keep-going"]} if library == "gloo" else {}
    started = subprocess.Popen(
        start(network, 2, PROGRAM, what, str(folder), **options),
        env=environment(SHIM_NETWORK_GAP="3"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = threading.Timer(DEADLINE, started.kill)
    deadline.start()
    with started:
        try:
            wait_until(lambda: len(list(folder.glob("ready*"))) == 4 or started.poll() is not None, DEADLINE)
            assert started.poll() is None, started.communicate()[0]
            yield {rank: int((folder / f"ready{rank}").read_text()) for rank in range(4)}
            started.communicate(timeout=20.0)
        finally:
            started.kill()
            deadline.cancel()
    assert_empty(network)


def wait_until(is_so: Any, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.005)


def seen_by(folder: Path, ranks: list[int], seconds: float) -> Seen:
    """Return what these ranks have seen, once all have."""
    paths = {rank: folder / f"rank{rank}.json" for rank in ranks}
    wait_until(lambda: all(path.exists() for path in paths.values()), seconds)
    return {rank: json.loads(path.read_text()) for rank, path in paths.items()}


def lose_rank(network: Network, what: str, folder: Path, victim: int, library: str = "gloo") -> None:
    """Kill *victim*: the others are told at once who it was and go on, and how it ended where they are on its host."""
    others = [rank for rank in range(4) if rank != victim]
    with ranks_in(network, what, folder, library) as processes:
        begun = time.time()
        os.kill(processes[victim], signal.SIGKILL)
        seen = seen_by(folder, others, 12.0)
    for rank, told in seen.items():
        assert (told["error"], told["ranks"]) == ("PeerLostError", [victim]), told
        is_here = rank // 2 == victim // 2
        how = "was killed by SIGKILL" if is_here else "died"
        where = "" if is_here else f" on host host{victim // 2}"
        assert f"rank {victim}'s process (pid {processes[victim]}{where}) {how}" in told["message"]
        assert told["at"] - begun < 0.5, told
        if what == "loop":
            assert told["with the lost"] == ("PeerLostError" if is_here else "")
            assert told["later"] == [3, *[float(sum(others))] * 3]


def test_a_rank_is_killed(two_hosts: Network, tmp_path: Path) -> None:
    lose_rank(two_hosts, "loop", tmp_path, 3)


@pytest.mark.nightly
@pytest.mark.parametrize(("what", "victim"), [("loop over large tensors", 1), ("loop with pauses", 2)])
def test_a_rank_is_killed_elsewhere(two_hosts: Network, what: str, victim: int, tmp_path: Path) -> None:
    lose_rank(two_hosts, what, tmp_path, victim)


@pytest.mark.nightly
@pytest.mark.parametrize("what", ["loop with pauses", "loop over large tensors"])
def test_rank_0_is_killed(two_hosts: Network, what: str, tmp_path: Path) -> None:
    """Its process has the other ends of all control connections."""
    lose_rank(two_hosts, what, tmp_path, 0)


def lose_host(network: Network, how: str, what: str, folder: Path, lost: int) -> None:
    """Cut off host *lost*: on both sides the ranks are told of the others."""
    with ranks_in(network, what, folder):
        begun = time.time()
        getattr(network, how)(network.hosts[lost])
        seen = seen_by(folder, [0, 1, 2, 3], 12.0)
    for rank, told in seen.items():
        assert told["error"] == "PeerLostError", told
        assert {missing // 2 for missing in told["ranks"]} == {1 - rank // 2}, told
        assert "cannot be reached" in told["message"], told
        assert told["at"] - begun < 6.0, told


@pytest.mark.nightly
def test_packets_from_a_host_are_lost_in_silence(two_hosts: Network, tmp_path: Path) -> None:
    lose_host(two_hosts, "blackhole", "loop with pauses", tmp_path, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("what", ["loop with pauses", "loop over large tensors"])
@pytest.mark.parametrize("how", ["blackhole", "cut"])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_host_is_cut_off(two_hosts: Network, how: str, what: str, lost: int, tmp_path: Path) -> None:
    lose_host(two_hosts, how, what, tmp_path, lost)


def by_hand(network: Network, host: int, what: str, folder: Path, **told: str) -> subprocess.Popen[str]:
    """Start the two ranks of *host*, which meet those of the other one at host0."""
    command = [sys.executable, "-m", "shim", "run", "-n", "2", "--nnodes", "2", "--node-rank", str(host)]
    popen: subprocess.Popen[str] = network.hosts[host].popen(
        [*command, "--keep-going", "--master", "10.77.0.1:4000", PROGRAM, what, str(folder)],
        env=environment(**told),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return popen


def seen_by_hand(network: Network, what: str, folder: Path, *told: dict[str, str]) -> Seen:
    """Start the ranks of both hosts with what each of them is *told*, and return what they have seen."""
    started = [by_hand(network, host, what, folder, **said) for host, said in enumerate(told)]
    for process in started:
        process.communicate(timeout=DEADLINE)
    assert_empty(network)
    return {int(path.stem[4:]): json.loads(path.read_text()) for path in sorted(folder.glob("rank*.json"))}


@pytest.mark.nightly
def test_hosts_with_different_secrets_do_not_meet(two_hosts: Network, tmp_path: Path) -> None:
    """As `shim run` names a job by its secret, too, these are two jobs for it."""
    seen = seen_by_hand(two_hosts, "meet", tmp_path, *({"SHIM_SECRET": secret} for secret in SECRETS))
    for rank, missing in enumerate([[2, 3], [2, 3], [0], [0]]):
        assert (seen[rank]["error"], seen[rank]["ranks"]) == ("CollectiveTimeoutError", missing), seen[rank]
    for rank in (2, 3):
        # Rank 0 gives up at about the same time.
        assert re.search(
            r"10\.77\.0\.1:4000: (is|was) the hub of another job \(are SHIM_SECRET, the port and the launcher's name of the run the same there\?\)",
            seen[rank]["message"],
        )


@pytest.mark.nightly
def test_a_rank_with_another_secret_is_told_so_at_once(two_hosts: Network, tmp_path: Path) -> None:
    """A launcher that knows of no secrets names the job by its address."""
    place = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "10.77.0.1"}
    started = [
        host.popen(
            [sys.executable, PROGRAM, "meet", str(tmp_path)],
            env=environment(**place, MASTER_PORT="4000", RANK=str(host.number), SHIM_SECRET=SECRETS[host.number]),
            stdin=subprocess.DEVNULL,
        )
        for host in two_hosts.hosts
    ]
    assert [rank.wait(DEADLINE) for rank in started] == [0, 0]
    first, second = seen_by(tmp_path, [0, 1], 1.0).values()
    assert (second["error"], second["after"] < 5.0) == ("StateError", True), second
    assert "rank 1 of 2 and rank 0 at 10.77.0.1:4000 have different secrets" in second["message"]
    assert "Set SHIM_SECRET to the same value on all hosts." in second["message"]
    assert (first["error"], first["ranks"]) == ("CollectiveTimeoutError", [1]), first
    assert "secret" in first["message"], first


@pytest.mark.nightly
def test_without_a_secret_ranks_do_not_meet_where_others_could(two_hosts: Network, tmp_path: Path) -> None:
    started = two_hosts.hosts[0].popen(
        [sys.executable, PROGRAM, "meet", str(tmp_path)],
        env=environment(RANK="0", WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", MASTER_ADDR="10.77.0.1", MASTER_PORT="4000"),
        stdin=subprocess.DEVNULL,
    )
    assert started.wait(DEADLINE) == 0
    seen = seen_by(tmp_path, [0], 1.0)[0]
    assert seen["error"] == "StateError"
    assert (
        "the ranks meet at 10.77.0.1:4000 (10.77.0.1), which other hosts can reach, and have no secret"
        in seen["message"]
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("interface", "what"),
    [
        (
            "eth7",
            r"SHIM_INTERFACE=eth7: no such interface is on host host{host}\n.*lo \(127.0.0.1.*eth0 \(10.77.0.{ip}",
        ),
        ("lo", r"SHIM_INTERFACE=lo"),
    ],
)
def test_a_wrong_interface(two_hosts: Network, interface: str, what: str, tmp_path: Path) -> None:
    said = {"SHIM_SECRET": SECRETS[0], "SHIM_INTERFACE": interface}
    seen = seen_by_hand(two_hosts, "meet", tmp_path, said, said)
    assert sorted(seen) == [0, 1, 2, 3]
    for rank, told in seen.items():
        host = rank // 2
        assert re.search(what.format(host=host, ip=1 + host), told["message"], re.DOTALL), told


@pytest.mark.nightly
def test_the_right_interface(two_hosts: Network, tmp_path: Path) -> None:
    said = {"SHIM_SECRET": SECRETS[0], "SHIM_INTERFACE": "eth0"}
    assert seen_by_hand(two_hosts, "meet", tmp_path, said, said) == {rank: {"sum": 6.0} for rank in range(4)}


@pytest.mark.nightly
def test_two_jobs_at_one_address(two_hosts: Network, tmp_path: Path) -> None:
    """Each has its secret and its name; the second one's ranks find theirs at the next port."""
    folders = [tmp_path / "first", tmp_path / "second"]
    started = []
    for number, folder in enumerate(folders):
        folder.mkdir()
        told = {"SHIM_SECRET": SECRETS[number], "SHIM_JOB_NAME": str(number)}
        started += [by_hand(two_hosts, host, "meet", folder, **told) for host in (1, 0)]
    outputs = [process.communicate(timeout=DEADLINE)[0] for process in started]
    for folder in folders:
        assert seen_by(folder, [0, 1, 2, 3], 1.0) == {rank: {"sum": 6.0} for rank in range(4)}, outputs
    assert_empty(two_hosts)


@pytest.mark.nightly
def test_a_rank_that_never_comes_is_named(two_hosts: Network, tmp_path: Path) -> None:
    finish(shim_run(two_hosts, 2, PROGRAM, "stay away", str(tmp_path), options=["--keep-going"]), DEADLINE)
    for rank, told in seen_by(tmp_path, [0, 1, 2], 1.0).items():
        assert (told["error"], told["ranks"]) == ("CollectiveTimeoutError", [3]), told
        assert re.search(r"rank 3 .*not come", told["message"]), told
        assert told["after"] < 10.0, (rank, told)
    assert_empty(two_hosts)


@pytest.mark.nightly
def test_ranks_that_come_late_are_named_with_their_places(two_hosts: Network, tmp_path: Path) -> None:
    command = shim_run(two_hosts, 2, PROGRAM, "come late", str(tmp_path))
    status, output = finish(command, DEADLINE, SHIM_STALL_WARNING="1")
    assert status == 0, output
    lines = Path(PROGRAM).read_text().split("\n")
    batch, message, total = (
        f"losses_across.py:{1 + next(number for number, line in enumerate(lines) if f'# the {word}' in line)}"
        for word in ("batch", "message", "sum")
    )
    for rank in (0, 1):
        report = "\n".join(line for line in output.split("\n") if line.startswith(f"[{rank}]"))
        assert f"shim: rank {rank} of 4 has waited 1" in report, output
        assert "not arrived: rank 2, rank 3" in report, output
        assert re.search(rf"rank {rank} \(pid \d+.*\), this rank, has waited .*{total}", report), report
        assert re.search(
            rf"rank 2 \(pid \d+.*\) has waited .*receiving 3 elements of float64 from rank 3.*{message}", report
        ), report
        assert re.search(rf"rank 3 \(pid \d+.*\) is at .*{batch} in load_a_batch", report), report
    assert_empty(two_hosts)
