"""Where the ranks of mpirun or srun meet: they tell each other by MPI, so that nobody has to give an address or a secret."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import secrets
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from shim.core.control.addresses import host_id
from shim.core.engines.mpi.library import Library, library
from shim.core.engines.mpi.link import problem_of_world
from shim.core.engines.mpi.pending import Transfer
from shim.core.job.hosts import free_address, interfaces
from shim.errors import CollectiveTimeoutError, EngineError, ShimError

_TO_RANK_0, _FROM_RANK_0 = 31_001, 31_002  # tags in MPI.COMM_WORLD
_UNTIL_TOLD = 2.0  # seconds for rank 0 to tell who is missing
_TEXT_BYTES = 2048  # of what each rank tells
_SIOCGIFNETMASK = 0x891B  # of linux/sockios.h: the network mask of an interface
_MOST_ADDRESSES = 20  # of a host that are told
_MOST_MISSING = 100  # ranks that are named


def place_by_mpi(rank: int, size: int, interface: str = "", timeout: float = 300.0) -> tuple[str, bytes]:
    """Return the address, host:port, where rank 0 waits for the others, and their secret; all ranks of the world call this.

    The address is empty where all ranks are on one host. It is that of *interface*, where rank 0 gives one; else rank 0's on a network
    that it shares with the others, else the one on the way to them. Raises EngineError where MPI has other ranks, or rank 0
    has no address, and CollectiveTimeoutError where a rank has not called this within *timeout* seconds.
    """
    mpi_library = library()
    if problem := problem_of_world(mpi_library, rank, size):
        raise EngineError(problem)
    mine = {"host": host_id(), "name": socket.gethostname(), "networks": _networks()[:_MOST_ADDRESSES]}
    if rank == 0:
        told = _decide(mpi_library, mine, interface, timeout)
    else:
        told = _ask_rank_0(mpi_library, mine, timeout)
    if told["missing"]:
        late = CollectiveTimeoutError(
            f"the ranks did not meet within {timeout:g} s; ranks that had not come: {', '.join(map(str, told['missing']))}"
        )
        late.ranks = tuple(told["missing"])
        raise late
    if told["problem"]:
        raise EngineError(f"rank 0 has no place where the ranks can meet: {told['problem']}")
    return told["address"], bytes.fromhex(told["secret"])


def _decide(mpi_library: Library, mine: dict[str, Any], interface: str, timeout: float) -> dict[str, Any]:
    """Hear the other ranks as rank 0, and tell those who have come what that leads to."""
    mpi, world = mpi_library.mpi, mpi_library.mpi.COMM_WORLD
    texts = [bytearray(_TEXT_BYTES) for _ in range(world.Get_size())]
    receives = {
        peer: _transfer(mpi, world.Irecv([texts[peer], mpi.BYTE], peer, _TO_RANK_0)) for peer in range(1, len(texts))
    }
    until = time.monotonic() + timeout
    missing = [peer for peer, receive in receives.items() if not receive.wait(max(0.0, until - time.monotonic()))]
    if missing:
        decision: dict[str, Any] = {"missing": missing[:_MOST_MISSING]}
    else:
        decision = {"missing": [], **_decision([mine, *map(json.loads, texts[1:])], interface)}
    for peer, receive in receives.items():
        if peer in missing:
            receive.give_up()
            mpi_library.abandon(texts)
        else:
            _send(mpi_library, decision, peer, _FROM_RANK_0)
    return decision


def _ask_rank_0(mpi_library: Library, mine: dict[str, Any], timeout: float) -> dict[str, Any]:
    mpi, world = mpi_library.mpi, mpi_library.mpi.COMM_WORLD
    text = bytearray(_TEXT_BYTES)
    _send(mpi_library, mine, 0, _TO_RANK_0)
    receive = _transfer(mpi, world.Irecv([text, mpi.BYTE], 0, _FROM_RANK_0))
    if receive.wait(timeout + _UNTIL_TOLD):
        told: dict[str, Any] = json.loads(text)
        return told
    receive.give_up()
    mpi_library.abandon(text)
    return {"missing": [0]}


def _send(mpi_library: Library, what: dict[str, Any], peer: int, tag: int) -> None:
    """Send a text, which is so short that MPI takes it at once."""
    mpi = mpi_library.mpi
    text = json.dumps(what).encode().ljust(_TEXT_BYTES)
    send = _transfer(mpi, mpi.COMM_WORLD.Isend([text, mpi.BYTE], peer, tag))
    if not send.wait(_UNTIL_TOLD):
        mpi_library.abandon(send)


def _transfer(mpi: Any, request: Any) -> Transfer:
    return Transfer([request], _TEXT_BYTES, mpi.Exception, lambda transfer: None)


def _decision(every: Sequence[dict[str, Any]], interface: str) -> dict[str, str]:
    """Decide as rank 0. An error goes to all: the others wait for what is decided."""
    decision = {"address": "", "secret": secrets.token_hex(32), "problem": ""}
    away = [each for each in every if each["host"] != every[0]["host"]]
    if away:
        try:
            decision["address"] = free_address(_ways(every[0], away), interface)
        except ShimError as error:
            decision["problem"] = str(error)[:1000]
        if not decision["address"]:
            decision["problem"] = decision["problem"] or "its host has no address but the loopback's"
    return decision


def _ways(mine: dict[str, Any], away: Sequence[dict[str, Any]]) -> list[str]:
    """Return addresses of other hosts, in the order in which the way to them is to be tried: first those on a network of all hosts."""
    networks = [ipaddress.ip_interface(text) for text in mine["networks"]]
    own = {network.ip for network in networks}
    theirs = [[ip for text in each["networks"] if (ip := ipaddress.ip_interface(text).ip) not in own] for each in away]
    shared = []
    for network in networks:
        neighbours = [next((ip for ip in addresses if ip in network.network), None) for addresses in theirs]
        if neighbours[0] is not None and None not in neighbours:
            shared.append(str(neighbours[0]))
    return [*shared, *(str(ip) for addresses in theirs[:1] for ip in addresses), away[0]["name"]]


def _networks() -> list[str]:
    """Return this host's IPv4 addresses with their networks, such as 10.0.0.3/24, without the loopback."""
    found = []
    for name, addresses in interfaces().items():
        mask = _mask_of(name)
        for text in addresses:
            if ":" not in text and not text.startswith("127."):
                found.append(f"{text}/{mask}")
    return found


def _mask_of(interface: str) -> str:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            answer = fcntl.ioctl(asking.fileno(), _SIOCGIFNETMASK, struct.pack("256s", interface.encode()))
    except OSError:
        return "32"
    return socket.inet_ntoa(answer[20:24])
