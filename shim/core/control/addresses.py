"""Addresses: where the hub of a meeting may be, from which a connection to it comes, and what tells hosts apart."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from shim.core.job.hosts import (
    address_towards,
    addresses_of_interface,
    boot_id,
    is_of_loopback,
    says_loopback,
    shown_interfaces,
)
from shim.errors import ArgumentError, StateError

CANDIDATES = 16
_ANOTHER_HOST = "192.0.2.1"  # of documentation: no host has it


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
    if for_other_hosts and not says_loopback(host) and all(is_of_loopback(ip) for _, ip, _ in hosts):
        hosts = _seen_by_others() or hosts  # Debian's /etc/hosts gives a host's own name an address of the loopback
    return [
        Place(
            family, (ip, candidate, *more), f"[{ip}]:{candidate}" if family == socket.AF_INET6 else f"{ip}:{candidate}"
        )
        for candidate in ports(port)
        for family, ip, more in hosts
    ]


def _seen_by_others() -> list[tuple[int, Any, tuple[Any, ...]]]:
    """Return this host's address on the way to others, which ask for its name elsewhere; none where there is no way."""
    mine = address_towards(_ANOTHER_HOST)
    return [(socket.AF_INET, mine, ())] if mine else []


def unix_place(key: str) -> Place:
    """Return the place of a meeting of ranks that are all on this host: an abstract unix socket, which vanishes with its process."""
    name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:32]
    return Place(socket.AF_UNIX, f"\0shim-control-{os.geteuid()}-{name}", "an abstract unix socket of this host")


def is_loopback(place: Place) -> bool:
    return place.family == socket.AF_UNIX or is_of_loopback(str(place.address[0]))


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
    parts = [boot_id() or socket.gethostname()]
    for namespace in ("net", "pid"):
        try:
            parts.append(str(os.stat(f"/proc/self/ns/{namespace}").st_ino))
        except OSError:
            parts.append("")
    return " ".join(parts)
