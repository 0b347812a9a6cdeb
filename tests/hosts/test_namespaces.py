"""The hosts that tests make are hosts: what reaches them, what does not, and what is left of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from namespaces import Host, Network, make_hosts

SERVE = """
import socket
server = socket.create_server(("", 4000))
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    with connection:
        connection.sendall(socket.gethostname().encode() + bytes(int(connection.recv(20) or b"0")))
"""
ASK = """
import socket, sys, time
began = time.monotonic()
with socket.create_connection((sys.argv[1], 4000), float(sys.argv[2])) as connection:
    connection.sendall(sys.argv[3].encode())
    answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
print(answer.rstrip(b"\\0").decode(), time.monotonic() - began)
"""


def serve(host: Host) -> subprocess.Popen[str]:
    server = host.popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    server.stdout.close()
    return server


def ask(host: Host, address: str, timeout: float = 5.0, size: int = 0) -> tuple[str, float]:
    """Return who answered *host* at *address* with *size* bytes, and after how many seconds; what went wrong where nobody did."""
    done = host.run([sys.executable, "-c", ASK, address, str(timeout), str(size)], capture_output=True, text=True)
    name, _, seconds = (done.stdout or done.stderr.splitlines()[-1]).rpartition(" ")
    return (name, float(seconds)) if not done.returncode else (f"{name} {seconds}", 0.0)


def test_each_host_reaches_the_others_by_address_and_name(three_hosts: Network) -> None:
    servers = [serve(host) for host in three_hosts.hosts]
    for host in three_hosts.hosts:
        for other in three_hosts.hosts:
            assert ask(host, other.address)[0] == other.name
            assert ask(host, other.name)[0] == other.name
        assert ask(host, "127.0.0.1")[0] == host.name
    three_hosts.clear()
    assert [server.wait(5) for server in servers] == [-signal.SIGKILL] * 3


def test_hosts_share_neither_abstract_sockets_nor_dev_shm(two_hosts: Network, tmp_path: Path) -> None:
    one, other = two_hosts.hosts
    bind = "import socket; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'mine'); open('/dev/shm/mine', 'w'); print(flush=True); input()"
    with one.popen([sys.executable, "-c", bind], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        held.stdout.readline()
        look = "import os, socket; socket.socket(socket.AF_UNIX).connect(chr(0) + 'mine')"
        assert b"ConnectionRefused" in other.run([sys.executable, "-c", look], capture_output=True).stderr
        assert other.run(["ls", "/dev/shm"], capture_output=True).stdout == b""
        assert one.run(["ls", "/dev/shm"], capture_output=True).stdout == b"mine\n"
        assert not Path("/dev/shm/mine").exists()
        held.communicate(b"\n")


def test_a_command_keeps_its_folder_environment_and_status(two_hosts: Network, tmp_path: Path) -> None:
    show = "import os, sys; print(os.getcwd(), os.environ['COLOUR'], os.uname().nodename, sys.argv[1:]); sys.exit(7)"
    host = two_hosts.hosts[1]
    done = host.run(
        [sys.executable, "-c", show, "a b", ""],
        cwd=tmp_path,
        env=os.environ | {"COLOUR": "red"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (7, f"{tmp_path} red {host.name} ['a b', '']\n")
    assert socket.gethostname() != host.name


@pytest.mark.parametrize("how", ["cut", "blackhole"])
def test_a_host_that_is_cut_off_cannot_be_reached_until_it_is_healed(two_hosts: Network, how: str) -> None:
    one, other = two_hosts.hosts
    serve(other)
    assert ask(one, other.address)[0] == other.name
    getattr(two_hosts, how)(other)
    assert "timed out" in ask(one, other.address, timeout=0.5)[0]
    state = other.run(["cat", "/sys/class/net/eth0/carrier"], capture_output=True, text=True)
    carrier = other.run(["ip", "link", "show", "eth0"], capture_output=True, text=True).stdout
    assert ("NO-CARRIER" in carrier) == (how == "cut"), state
    two_hosts.heal()
    assert ask(one, other.address)[0] == other.name


def test_a_rate_limits_both_directions(two_hosts: Network) -> None:
    one, other = two_hosts.hosts
    serve(one)
    serve(other)
    size = 5_000_000  # bytes: 0.4 s at 100 Mbit/s
    two_hosts.rate(other, 100)
    assert min(ask(one, other.address, size=size)[1], ask(other, one.address, size=size)[1]) > 0.3
    two_hosts.heal()
    for here, there in ((one, other), (other, one)):  # once in ten times on a busy machine
        assert min(ask(here, there.address, size=size)[1] for _ in range(10)) < 0.3


def test_the_hosts_of_two_test_processes_do_not_meet() -> None:
    with make_hosts(2) as first, make_hosts(2) as second:
        serve(first.hosts[0])
        assert ask(first.hosts[1], "10.77.0.1")[0] == "host0"
        assert "refused" in ask(second.hosts[1], "10.77.0.1")[0]


CRASH = """
import os, sys, time
sys.path[:0] = sys.argv[1:]
from namespaces import make_hosts
with make_hosts(2) as network:
    print(*[host.holder for host in network.hosts], flush=True)
    time.sleep(60)
"""


def test_nothing_is_left_of_the_hosts_of_a_process_that_was_killed(two_hosts: Network) -> None:
    folders = map(str, list(Path(__file__).parents)[:2])
    with subprocess.Popen([sys.executable, "-c", CRASH, *folders], stdout=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        holders = maker.stdout.readline().split()
        maker.kill()
    assert len(holders) == 2
    until = time.monotonic() + 5
    while left := [holder for holder in holders if Path(f"/proc/{holder.decode()}/ns/net").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.02)


def test_without_the_tools_tests_are_skipped_for_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CI", raising=False)
    with (
        pytest.raises(pytest.skip.Exception, match="missing Debian packages: iproute2, mount, util-linux"),
        make_hosts(1),
    ):
        pass


def test_without_privileges_tests_are_skipped_and_fail_where_they_must_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespaces.need", lambda *programs: None)
    monkeypatch.setattr("namespaces.what_prevents_hosts", lambda: "Operation not permitted")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not permitted"), make_hosts(1):
        pass
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not permitted"), make_hosts(1):
        pass
