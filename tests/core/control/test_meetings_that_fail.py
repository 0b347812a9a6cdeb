"""Mistakes that cannot mend end a meeting on all ranks, and each error names the place. A process that is short of descriptors goes on."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from ranks_in_threads import SECRET, free_address, meet_as, new_job, on_each

from shim.core.control import Control, Meeting, meet, other_ranks, rank_zero
from shim.core.job.hosts import interfaces
from shim.errors import CollectiveTimeoutError, StateError


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_zero, "_FOR_LATE_RANKS", 1.5)
    monkeypatch.setattr(other_ranks, "_TO_SAY_WHY_NOT", 1.5)


def close(*controls: object) -> None:
    for control in controls:
        assert isinstance(control, Control), control
        control.close()


def come(job: Meeting, ranks: Sequence[int], last: int, wrong: dict[str, Any]) -> dict[int, Any]:
    """Let *ranks* meet, of which *last* comes with what is *wrong*, once it can be told. Return what each raises, within seconds."""
    began = time.monotonic()

    def come_as(rank: int) -> Control:
        time.sleep(0.4 if rank == last else 0)
        how: dict[str, Any] = {"rank": rank} | (wrong if rank == last else {})
        return meet(replace(job, **how), 20)

    got = on_each(ranks, come_as)
    assert time.monotonic() - began < 6  # where one rank never comes, rank 0 tells for a moment who comes late
    return got


@pytest.mark.parametrize("address", ["", "tcp"])
@pytest.mark.parametrize(
    ("ranks", "last", "wrong", "said"),
    [
        (
            [0, 1, 2],
            2,
            {"size": 4},
            "the ranks must agree on the world size, but it is 3 on rank 0 on host {host}, and 4 on rank 2",
        ),
        (
            [0, 1, 3],
            3,
            {"rank": 1},
            "rank 1 came twice: as process {pid} on host {host} (127.0.0.1) and as process {pid} on",
        ),
        ([0, 1, 3], 3, {"size": 4}, "it is 3 on rank 0 on host {host}, and 4 on rank 3"),
    ],
)
def test_a_mistake_that_cannot_mend_ends_the_meeting_on_all_ranks(
    address: str, ranks: list[int], last: int, wrong: dict[str, Any], said: str
) -> None:
    job = new_job(3, address and free_address(), SECRET)
    got = come(job, ranks, last, wrong)
    for error in got.values():
        assert isinstance(error, StateError)
        assert said.format(host=socket.gethostname(), pid=os.getpid()) in str(error)


@pytest.mark.parametrize("last", [0, 2])
def test_an_interface_that_cannot_be_used_ends_the_meeting_on_all_ranks(last: int) -> None:
    job = new_job(3, free_address(), SECRET)
    for rank, error in come(job, range(3), last, {"interface": "eth99"}).items():
        assert isinstance(error, StateError)
        assert "SHIM_INTERFACE=eth99: no such interface is on host" in str(error)
        assert ("rank 2 cannot come" in str(error)) is (last == 2 and rank != 2)


def test_who_comes_late_to_a_meeting_that_failed_is_told() -> None:
    job = new_job(3, free_address(), SECRET)
    got = come(replace(job, size=3), [0, 1], 1, {"size": 2})
    assert all("must agree on the world size" in str(error) for error in got.values())
    first = threading.Thread(target=lambda: come(job, [0, 1], 1, {"size": 2}))
    first.start()
    time.sleep(0.8)
    with pytest.raises(StateError, match="must agree on the world size"):
        meet(replace(job, rank=2), 60)
    first.join()


def test_a_name_that_stays_unknown_ends_the_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.core.control import meeting

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(meeting, "_FOR_A_NAME", 0.3)
    for rank in (0, 1):
        with pytest.raises(
            StateError, match=rf"rank {rank} of 2: the ranks meet at nowhere:29500, and no host has that name"
        ):
            meet(replace(new_job(2, "nowhere:29500", SECRET), rank=rank), 60)


def test_a_process_without_descriptors_looks_for_no_guests_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    class Listener(socket.socket):
        def accept(self) -> Any:
            tries.append(time.monotonic())
            if len(tries) <= 3:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    def listening_at(family: int, address: Any) -> socket.socket:
        listener = original(family, address)
        return Listener(listener.family, listener.type, fileno=listener.detach())

    original = rank_zero.listening_at
    monkeypatch.setattr(rank_zero, "listening_at", listening_at)
    close(*meet_as(new_job(2, free_address(), SECRET), [0, 1]).values())
    assert all(later - earlier > 0.15 for earlier, later in itertools.pairwise(tries[:4]))


def test_an_interface_is_used_and_checked() -> None:
    assert "127.0.0.1" in interfaces()["lo"]
    job = replace(new_job(2, free_address(), SECRET), interface="lo")
    close(*meet_as(job, [0, 1]).values())
    for rank in range(2):
        with pytest.raises(
            StateError, match=r"SHIM_INTERFACE=eth99: no such interface is on host .*\n.*lo \(127\.0\.0\.1"
        ):
            meet(replace(job, rank=rank, interface="eth99"), 5)


def test_the_address_must_be_of_the_interface_on_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    from shim.core.job import hosts

    monkeypatch.setattr(hosts, "interfaces", lambda: {"lo": ["127.0.0.1"], "eth5": ["10.9.8.7"], "eth6": []})
    job = new_job(2, free_address(), SECRET)
    with pytest.raises(StateError, match=r"SHIM_INTERFACE=eth5 has 10\.9\.8\.7, and the ranks meet at 127\.0\.0\.1:"):
        meet(replace(job, interface="eth5"), 5)
    with pytest.raises(StateError, match=r"no address is on that interface on host .*\n.*eth6 \(no address\)"):
        meet(replace(job, interface="eth6"), 5)
    with pytest.raises(StateError, match="SHIM_INTERFACE=eth5 has no IPv6 address"):
        meet(replace(job, rank=1, address="[::1]:29500", interface="eth5"), 5)


@pytest.mark.parametrize("rank", [0, 1])
def test_an_unknown_name_is_named(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(CollectiveTimeoutError, match=r"nowhere: no host has that name \(Name or service not known\)"):
        meet(replace(new_job(2, "nowhere:29500", SECRET), rank=rank), 0.1)
