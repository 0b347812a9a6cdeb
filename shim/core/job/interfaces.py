"""This host's network interfaces, and their addresses."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from shim.errors import StateError


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
