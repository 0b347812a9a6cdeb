"""How ranks meet, and each way in which they cannot: every error names the place, and is readable alone."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from ranks_in_threads import SECRET, assert_soon, free_address, meet_as, new_job, on_each, world

from shim.core.control import Control, Meeting, authentication, handshakes, meet, other_ranks, rank_zero
from shim.core.control.addresses import places, ports, taken_apart
from shim.core.control.authentication import HELLO_SIZE, Hello, hash_of_key
from shim.core.control.hub_search import shown_outcomes
from shim.core.control.peers import shown_ranks
from shim.core.job.hosts import interfaces
from shim.errors import ArgumentError, CollectiveTimeoutError, PeerLostError, StateError


def close(*controls: object) -> None:
    for control in controls:
        assert isinstance(control, Control), control
        control.close()


@contextmanager
def server(port: int, says: bytes = b"") -> Iterator[list[bytes]]:
    """A server of another program on a loopback *port*; give what its clients send."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", port)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    try:
                        client.sendall(says)
                        client.settimeout(1)
                        heard.append(client.recv(100))
                    except ConnectionResetError:  # it went without reading
                        heard.append(b"")

        thread = threading.Thread(target=serve)
        thread.start()
        yield heard
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("way", ["unix", "tcp", "[::1]"])
def test_ranks_meet(size: int, way: str) -> None:
    port = free_address().rpartition(":")[2]
    address = {"unix": "", "tcp": f"localhost:{port}", "[::1]": f"[::1]:{port}"}[way]
    with world(size, address, SECRET) as controls:
        assert [peer.pid for peer in controls[-1].peers] == [os.getpid()] * size
        assert controls[-1].peers[0].address == ("::1" if way == "[::1]" and size > 1 else "127.0.0.1")


def test_candidates_are_sixteen_ports_below_65536() -> None:
    assert ports(29500) == list(range(29500, 29516))
    assert ports(65530) == [*range(65530, 65536), *range(65520, 65530)]
    assert taken_apart("[fe80::1%eth0]:80") == ("fe80::1%eth0", 80)
    for address in ("host", "host:", ":80", "host:0", "host:65536", "host:http"):
        with pytest.raises(ArgumentError, match="must be host:port"):
            taken_apart(address)


def test_the_port_may_be_another_programs(capfd: pytest.CaptureFixture[str]) -> None:
    job = new_job(3, free_address(), SECRET)
    port = int(job.address.rpartition(":")[2])
    with server(port) as heard, server(port + 1, b"HTTP/1.1 400 I speak first, and much" + bytes(100)) as also_heard:
        began = time.monotonic()
        controls = meet_as(job, range(3))
        assert time.monotonic() - began < 2
        close(*controls.values())
    assert set(heard + also_heard) <= {b""}  # foreign servers get no garbage
    assert heard
    assert also_heard


def test_two_jobs_may_have_one_address() -> None:
    one, other = new_job(2, free_address(), SECRET), new_job(2, "", SECRET)
    other = replace(other, address=one.address)
    got = on_each(range(4), lambda rank: meet(replace((one, other)[rank // 2], rank=rank % 2), 10))
    exchanged = on_each(range(4), lambda rank: got[rank].exchange("k", [0, 1], b"%d" % rank, 5))
    assert exchanged == {0: [b"0", b"1"], 1: [b"0", b"1"], 2: [b"2", b"3"], 3: [b"2", b"3"]}
    close(*got.values())


def test_the_same_job_may_run_twice_one_after_another_while_the_first_ends() -> None:
    job = new_job(2, free_address(), SECRET)
    first = meet_as(job, range(2))
    second = meet_as(job, range(2))
    assert on_each(range(2), lambda rank: second[rank].exchange("k", [0, 1], b"%d" % rank, 5)) == {
        rank: [b"0", b"1"] for rank in range(2)
    }
    close(*first.values(), *second.values())


def test_rank_0_may_come_last() -> None:
    job = new_job(3, free_address(), SECRET)
    got = on_each(range(3), lambda rank: (time.sleep(0 if rank else 0.4), meet(replace(job, rank=rank), 10))[1])
    close(*got.values())


def test_a_wrong_secret_is_told_at_once_and_noted_by_rank_0() -> None:
    job = new_job(2, free_address(), SECRET)
    secrets = {0: SECRET, 1: b"another secret of some length"}
    began = time.monotonic()
    ends = {}

    def come(rank: int) -> Control:
        try:
            return meet(replace(job, rank=rank, secret=secrets[rank]), 0.6)
        finally:
            ends[rank] = time.monotonic() - began

    got = on_each(range(2), come)
    assert isinstance(got[1], StateError)
    assert f"rank 1 of 2 and rank 0 at {job.address} have different secrets" in str(got[1])
    assert "Set SHIM_SECRET to the same value on all hosts" in str(got[1])
    assert ends[1] < 0.5
    assert isinstance(got[0], CollectiveTimeoutError)
    assert got[0].ranks == (1,)
    assert f"rank 1 has not come to rank 0, at {job.address} on host {socket.gethostname()}" in str(got[0])
    assert "rank 1 at 127.0.0.1 has another secret" in str(got[0])


@pytest.mark.parametrize("with_one", [0, 1])
def test_a_secret_on_one_side_alone(with_one: int) -> None:
    job = new_job(2, free_address())
    got = on_each(range(2), lambda rank: meet(replace(job, rank=rank, secret=SECRET if rank == with_one else b""), 0.4))
    sides = ["rank 0 at " + job.address, "rank 1 of 2"]
    assert f"{sides[with_one]} has a secret, and {sides[1 - with_one]} has none" in str(got[1])


def test_a_false_hub_without_the_secret_is_not_believed() -> None:
    job = new_job(2, free_address(), SECRET)
    hello = Hello.new(hash_of_key(job.key), SECRET)
    with socket.create_server(("127.0.0.1", int(job.address.rpartition(":")[2]))) as listener:

        def impersonate() -> None:
            client, _ = listener.accept()
            with client:
                client.sendall(hello.packed())
                client.recv(1000)
                client.sendall(authentication.Reply.packed_with(authentication.Status.WELCOME, bytes(32)))
                client.recv(1000)

        thread = threading.Thread(target=impersonate)
        thread.start()
        with pytest.raises(StateError, match="different secrets"):
            meet(replace(job, rank=1), 5)
        thread.join()


def test_other_hosts_addresses_need_a_secret() -> None:
    for rank in range(2):
        with pytest.raises(StateError, match=rf"rank {rank} of 2.*192\.0\.2\.1:80.*\n.*SHIM_SECRET to the same value"):
            meet(replace(new_job(2, "192.0.2.1:80"), rank=rank), 5)


def test_an_address_of_another_host_is_refused_on_rank_0() -> None:
    with pytest.raises(StateError, match=r"192\.0\.2\.1 is no address of rank 0's host .*\n.*lo \(127\.0\.0\.1"):
        meet(new_job(2, "192.0.2.1:29500", SECRET), 5)


def test_refused_foreign_and_silent_places_are_told_apart() -> None:
    job = new_job(2, free_address(), SECRET)
    port = int(job.address.rpartition(":")[2])
    other = Meeting(0, 2, "another job", f"127.0.0.1:{port + 1}", SECRET)
    with server(port), server(port + 2, b"SSH-2.0-OpenSSH" + bytes(HELLO_SIZE)):
        waits = threading.Thread(target=lambda: meet_as(other, [0], 1.5))
        waits.start()
        with pytest.raises(CollectiveTimeoutError) as late:
            meet(replace(job, rank=1), 1.2)
        waits.join()
    text = str(late.value)
    assert late.value.ranks == (0,)
    assert f"rank 1 of 2 did not find rank 0 within 1.2 s at {job.address}, from host {socket.gethostname()}" in text
    assert f"127.0.0.1:{port}: does not greet" in text
    assert f"127.0.0.1:{port + 1}: is the hub of another job" in text
    assert f"127.0.0.1:{port + 2}: is another program's" in text
    assert f"127.0.0.1:{port + 3} ... 127.0.0.1:{port + 15} (13 places): refused" in text


def test_too_few_ranks_are_told_on_all_that_came() -> None:
    for address in ("", free_address()):
        got = meet_as(new_job(5, address, SECRET), [0, 1, 3], 0.4)
        for error in got.values():
            assert isinstance(error, CollectiveTimeoutError)
            assert error.ranks == (2, 4)
            assert "the ranks did not meet within 0.4 s: ranks 2 and 4 have not come" in str(error)


def test_a_rank_whose_time_is_up_first_names_the_missing_and_may_come_again() -> None:
    job = new_job(3)
    hub = threading.Thread(target=lambda: got.update(meet_as(job, [0], 10)))
    got: dict[int, object] = {}
    hub.start()
    early = meet_as(job, [1], 0.3)[1]
    assert isinstance(early, CollectiveTimeoutError)
    assert early.ranks == (2,)
    got.update(meet_as(job, [1, 2]))
    hub.join()
    close(got[2], got[1], got[0])


@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_rank_0_twice_is_told(way: str) -> None:
    job = new_job(2, "" if way == "unix" else free_address(), SECRET)
    first = threading.Thread(target=lambda: meet_as(job, [0], 1.5))
    first.start()
    time.sleep(0.2)
    second = meet_as(job, [0], 0.2)[0]
    first.join()
    assert isinstance(second, CollectiveTimeoutError)
    expected = {
        "unix": f"process {os.getpid()} (uid {os.geteuid()}) meets there, as rank 0 of a job of the same name",
        "tcp": f"another process waits at {job.address} as rank 0 of a job of this name, {job.key!r}",
    }
    assert expected[way] in str(second)


def test_another_protocol_is_refused_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    job = new_job(2, free_address(), SECRET)
    monkeypatch.setattr(other_ranks, "PROTOCOL", 2)
    got = on_each(range(2), lambda rank: meet(replace(job, rank=rank), 0.4))
    assert isinstance(got[1], StateError)
    assert "rank 1 of 2 speaks version 2, and rank 0 version 1" in str(got[1])
    monkeypatch.undo()
    monkeypatch.setattr(handshakes, "PROTOCOL", 3)  # of a hub that greets alike, and then sees another version
    got = on_each(range(2), lambda rank: meet(replace(job, rank=rank), 0.4))
    assert f"rank 0 on host {socket.gethostname()} speaks version 3, and rank 1 version 1" in str(got[1])
    assert "Install the same version of shim on all hosts" in str(got[1])


def test_one_warning_says_what_is_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    job = new_job(2, free_address(), SECRET)
    assert isinstance(meet_as(job, [1], 0.6, warn_after=0.2)[1], CollectiveTimeoutError)
    text = capfd.readouterr().err
    assert text.count("rank 1 of 2 has waited 0.2 s: it looks for rank 0 at " + job.address) == 1
    assert "refused" in text
    assert isinstance(meet_as(job, [0], 0.3, warn_after=0.2)[0], CollectiveTimeoutError)
    text = capfd.readouterr().err
    assert text.count(f"rank 0 of 2 has waited 0.2 s: rank 1 has not come to rank 0, at {job.address}") == 1
    meet_as(job, [0], 0.1, warn_after=0)
    assert capfd.readouterr().err == ""


def test_who_came_learns_that_rank_0_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_zero, "_those_missing", lambda *_: 1 // 0)
    for address in ("", free_address()):
        job = new_job(3, address)
        got = on_each([0, 1], lambda rank: meet(replace(job, rank=rank), 5 if rank else 0.3))  # noqa: B023
        assert isinstance(got[0], ZeroDivisionError)
        assert isinstance(got[1], PeerLostError)
        assert "rank 0 left the meeting (ZeroDivisionError)" in str(got[1])


def test_strangers_cannot_disturb_a_meeting() -> None:
    job = new_job(2, free_address(), SECRET)
    port = int(job.address.rpartition(":")[2])
    got: dict[int, object] = {}
    hub = threading.Thread(target=lambda: got.update(meet_as(job, [0], 10)))
    hub.start()
    strangers = []

    def can_connect() -> bool:
        try:
            strangers.append(socket.create_connection(("127.0.0.1", port)))
        except ConnectionRefusedError:
            return False
        return True

    assert_soon(can_connect)
    for says in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(500)):
        strangers.append(socket.create_connection(("127.0.0.1", port)))
        strangers[-1].sendall(says)
    got.update(meet_as(job, [1]))
    hub.join()
    for stranger in strangers:
        stranger.close()
    close(got[1], got[0])


def test_a_name_that_is_the_loopback_at_home_is_taken_for_the_address_that_others_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debians = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 29500))]
    found = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *more, **how: debians if host[0].isalpha() else found(host, *more, **how)
    )
    mine = {ip for found in interfaces().values() for ip in found} - {"127.0.0.1", "::1"}
    if mine:
        assert places("node1:29500", for_other_hosts=True)[0].address[0] in mine
    assert places("node1:29500", for_other_hosts=False)[0].address == ("127.0.1.1", 29500)
    assert places("localhost:29500", for_other_hosts=True)[0].address == ("127.0.1.1", 29500)


def test_ranks_and_outcomes_are_shown_short() -> None:
    assert [shown_ranks(ranks) for ranks in ([2], [1, 0], [5, 4, 3, 9], [0, 2, 4], range(1000))] == [
        "rank 2",
        "ranks 0 and 1",
        "ranks 3-5 and 9",
        "ranks 0, 2 and 4",
        "ranks 0-999",
    ]
    outcomes = {"a:1": "silent", "a:2": "refused", "a:3": "refused"}
    assert shown_outcomes(outcomes) == "a:1: silent; a:2, a:3: refused"
