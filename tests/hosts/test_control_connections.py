"""Control connections between hosts: a host that is cut off, one that cannot be reached, and the interface that is chosen."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest
from namespaces import Host, Network

_PRELUDE = """
import sys, time
from shim.core.control import Meeting, meet
rank, size, address, interface = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
def enter(secret=b"sixteen characters or more", timeout=20):
    return meet(Meeting(rank, size, "across", address, secret, b"", interface, 3.0), timeout)
def until_gone(lost):
    began = time.monotonic()
    while not control.is_gone(lost):
        assert time.monotonic() - began < 8, "not told"
        time.sleep(0.01)
    print(f"{control.ending_of(lost)} after {time.monotonic() - began:.1f} s", flush=True)
"""


def start(host: Host, rank: int, size: int, address: str, program: str, interface: str = "") -> subprocess.Popen[Any]:
    argv = [sys.executable, "-c", _PRELUDE + textwrap.dedent(program), str(rank), str(size), address, interface]
    return host.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(child: subprocess.Popen[Any]) -> list[str]:
    out, err = child.communicate(timeout=20)
    assert not err, err
    return str(out).splitlines()


def assert_met(*children: subprocess.Popen[Any]) -> None:
    for child in children:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line == "met\n", line or child.communicate()[1]


@pytest.mark.parametrize("way", ["cut", "blackhole"])
def test_a_host_that_is_cut_off_is_told_on_both_sides(two_hosts: Network, way: str) -> None:
    near, far = two_hosts.hosts
    address = f"{near.address}:29500"
    program = "control = enter(); print('met', flush=True); until_gone({})"
    ranks = [start(near, rank, 4, address, program.format(2)) for rank in (0, 1)]
    ranks += [start(far, rank, 4, address, program.format(0)) for rank in (2, 3)]
    assert_met(*ranks)
    time.sleep(1.5)
    getattr(two_hosts, way)(far)
    told = [lines(rank)[0] for rank in ranks]
    for text in told[:2]:
        assert f"'s host {far.name} ({far.address}, ranks 2 and 3) cannot be reached since 3" in text
    for text in told[2:]:
        assert f"'s host {near.name} ({near.address}) cannot be reached since 3" in text
    assert all(float(text.split()[-2]) < 6.5 for text in told), told  # 1.5 of them before the cut


def test_peers_have_the_hosts_addresses_and_ids(two_hosts: Network) -> None:
    near, far = two_hosts.hosts
    program = """
    control = enter()
    print([(peer.host, peer.address) for peer in control.peers], [peer.host_id == control.peers[0].host_id for peer in control.peers])
    control.exchange("all", [0, 1, 2], b"", 10)
    """
    places = [(near, 0), (near, 1), (far, 2)]
    ranks = [start(host, rank, 3, f"{near.name}:29500", program, "eth0") for host, rank in places]
    shown = [(host.name, host.address) for host, _ in places]
    for rank in ranks:
        assert lines(rank) == [f"{shown} [True, True, False]"]


def test_an_unreachable_host_is_named(two_hosts: Network) -> None:
    near, far = two_hosts.hosts
    program = """
    try:
        enter(timeout=4)
    except Exception as error:
        print(type(error).__name__, error)
    """
    two_hosts.cut(far)
    child = start(far, 1, 2, f"{near.address}:29500", program, "eth0")
    text = " ".join(lines(child))
    assert "CollectiveTimeoutError rank 1 of 2 did not find rank 0 within 4 s" in text
    assert f"from {far.address} (SHIM_INTERFACE=eth0), from host {far.name}" in text
    assert "cannot be reached" in text or "does not answer" in text
    assert f"{near.address}:29500" in text


def test_an_interface_that_does_not_lead_there_is_named(two_hosts: Network) -> None:
    near, far = two_hosts.hosts
    program = """
    try:
        enter(timeout=1)
    except Exception as error:
        print(type(error).__name__, error)
    """
    far.configure("ip", "link", "add", "other0", "type", "bridge")
    far.configure("ip", "address", "add", "10.99.0.1/24", "dev", "other0")
    try:
        ranks = [
            start(near, 0, 2, f"{near.address}:29500", program),
            start(far, 1, 2, f"{near.address}:29500", program, "other0"),
        ]
        hub, member = (" ".join(lines(rank)) for rank in ranks)
    finally:
        far.configure("ip", "link", "delete", "other0")
    assert "rank 1 has not come to rank 0" in hub
    assert "from 10.99.0.1 (SHIM_INTERFACE=other0)" in member
