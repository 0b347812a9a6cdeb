"""Addresses: where the hub of a meeting may be, this host's interfaces, and what tells hosts apart."""

from __future__ import annotations

import array
import fcntl
import hashlib
import ipaddress
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from shim.errors import ArgumentError, StateError

__all__ = [
    "CANDIDATES",
    "Place",
    "address_of_interface",
    "addresses_of_interface",
    "host_id",
    "interfaces",
    "is_loopback",
    "places",
    "ports",
    "shown_interfaces",
    "taken_apart",
    "unix_place",
]

CANDIDATES = 16


class Place(NamedTuple):
    """An address at which a socket of *family* can listen, as the socket module has it, and as messages show it."""

    family: int
    address: tuple[object, ...] | str
    shown: str


def taken_apart(address: str) -> tuple[str, int]:
    """Return host and port of "host:port" or "[host]:port". Raises ArgumentError where it is neither."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ArgumentError(
            f"the address where the ranks meet must be host:port with a port in 1..65535, got {address!r}"
        )
    return host, int(port)


def ports(port: int) -> list[int]:
    """Return the ports of which the hub takes the first free one: *port* and the 15 behind it, or before it where these end at 65535."""
    lowest = min(port, 65536 - CANDIDATES)
    return [lowest + (port - lowest + turn) % CANDIDATES for turn in range(CANDIDATES)]


def places(address: str, for_other_hosts: bool) -> list[Place]:
    """Return the places where the hub of a meeting at *address* may be, best first. Raises OSError where the name is unknown."""
    host, port = taken_apart(address)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    hosts: list[tuple[int, Any, tuple[Any, ...]]] = list(
        dict.fromkeys((family, at[0], at[2:]) for family, _, _, _, at in found)
    )
    if for_other_hosts and not _says_loopback(host) and all(_is_loopback(ip) for _, ip, _ in hosts):
        hosts = _seen_by_others() or hosts
    return [
        Place(
            family, (ip, candidate, *more), f"[{ip}]:{candidate}" if family == socket.AF_INET6 else f"{ip}:{candidate}"
        )
        for candidate in ports(port)
        for family, ip, more in hosts
    ]


def _says_loopback(host: str) -> bool:
    """Tell whether *host*, a name or an address, is meant for the ranks of one host."""
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _seen_by_others() -> list[tuple[int, Any, tuple[Any, ...]]]:
    """Return this host's address on the way to others, which ask for its name elsewhere; none where there is no way.

    Debian's /etc/hosts gives a host's own name an address of the loopback. No packet is sent.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of no host
        except OSError:
            return []
        mine = probe.getsockname()[0]
    return [] if _is_loopback(mine) else [(socket.AF_INET, mine, ())]


def unix_place(key: str) -> Place:
    """Return the place of a meeting of ranks that are all on this host: an abstract unix socket, which vanishes with its process."""
    name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:32]
    return Place(socket.AF_UNIX, f"\0shim-control-{os.geteuid()}-{name}", "an abstract unix socket of this host")


def is_loopback(place: Place) -> bool:
    return place.family == socket.AF_UNIX or _is_loopback(place.address[0])


def _is_loopback(ip: object) -> bool:
    return ipaddress.ip_address(str(ip).partition("%")[0]).is_loopback


def interfaces() -> dict[str, list[str]]:
    """Return this host's network interfaces, each with its addresses."""
    found: dict[str, list[str]] = {name: [] for _, name in socket.if_nameindex()}
    for name, ip in (*_ipv4_addresses(), *_ipv6_addresses()):
        found.setdefault(name.partition(":")[0], []).append(ip)
    return found


def _ipv4_addresses() -> list[tuple[str, str]]:
    """Ask the kernel with SIOCGIFCONF, see netdevice(7): it fills a buffer with records of 40 bytes."""
    room = array.array("B", bytes(40 * 1024))
    buffer_at, _ = room.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe.fileno(), 0x8912, struct.pack("iP", len(room), buffer_at))
    length, _ = struct.unpack("iP", answer)
    records = [room[first : first + 40].tobytes() for first in range(0, length, 40)]
    return [(record[:16].partition(b"\0")[0].decode(), socket.inet_ntoa(record[20:24])) for record in records]


def _ipv6_addresses() -> list[tuple[str, str]]:
    try:
        with open("/proc/net/if_inet6") as file:
            lines = [line.split() for line in file]
    except OSError:
        return []  # the kernel has no IPv6
    return [(line[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line[0]))) for line in lines]


def shown_interfaces() -> str:
    return ", ".join(f"{name} ({', '.join(found) or 'no address'})" for name, found in interfaces().items())


def addresses_of_interface(name: str) -> list[str]:
    """Return the addresses of the interface that SHIM_INTERFACE names. Raises StateError where there is none."""
    found = interfaces().get(name)
    if found:
        return found
    reason = "no such interface is" if found is None else "no address is on that interface"
    raise StateError(
        f"SHIM_INTERFACE={name}: {reason} on host {socket.gethostname()}\nThe interfaces are {shown_interfaces()}."
    )


def address_of_interface(name: str, like: Sequence[Place]) -> dict[int, str]:
    """Return by family the address of interface *name* that connections to a place *like* these are to come from.

    Raises StateError where it has none of any of these families.
    """
    found: dict[int, str] = {}
    for ip in addresses_of_interface(name):
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        if not ip.startswith("fe80:"):  # those need to be told the interface
            found.setdefault(family, ip)
    if not any(place.family in found for place in like):
        kind = "IPv6" if all(place.family == socket.AF_INET6 for place in like) else "IPv4"
        raise StateError(
            f"SHIM_INTERFACE={name} has no {kind} address on host {socket.gethostname()}, which a connection to {like[0].shown} needs\n"
            f"The interfaces are {shown_interfaces()}."
        )
    return found


def host_id() -> str:
    """Return what processes have in common that can share memory: the kernel's run, and the namespaces of network and processes.

    Abstract unix sockets, over which memory is passed on, belong to a network namespace.
    """
    parts = []
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            parts.append(file.read().strip())
    except OSError:
        parts.append(socket.gethostname())
    for namespace in ("net", "pid"):
        try:
            parts.append(str(os.stat(f"/proc/self/ns/{namespace}").st_ino))
        except OSError:
            parts.append("")
    return " ".join(parts)
