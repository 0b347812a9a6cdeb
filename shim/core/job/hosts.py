"""Names and addresses of hosts: which are this host's, which one others reach it at, its network interfaces, and Slurm's lists of hosts."""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
from collections.abc import Sequence

from shim.errors import ArgumentError, StateError

_ANY_PORT = 9  # nothing is sent to it


def boot_id() -> str:
    """Return what tells this run of the kernel from all others, which containers on one host share; nothing where it does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def another_host(source: str, host: str) -> str:
    """Return what shows that *host*, which *source* gave, is not this host; nothing where it is. Raises ArgumentError if no host has the name."""
    if says_loopback(host) or host == socket.gethostname():
        return ""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise ArgumentError(f"{source} must be a name or address of this host, got {host}: {error}") from None
    if any(_is_mine(family, address) for family, _, _, _, address in addresses):
        return ""
    return f"{source} gives {host}, which is not this host, {socket.gethostname()}"


def several_may_meet_at(source: str, host: str, secret: str | None) -> str:
    """Return what shows that ranks which meet at *host*, which *source* gave, are on several hosts, or may be.

    The rank that is on *host* itself cannot see where the others are. Ranks of several hosts need a *secret*: where there is one, and
    others can reach *host*, this rank too must expect them. Raises ArgumentError if no host has the name.
    """
    away = another_host(source, host)
    if away or not secret or says_loopback(host):
        return away
    return f"{source} gives {host}, which other hosts reach, and SHIM_SECRET is set"


def _is_mine(family: int, address: tuple[object, ...]) -> bool:
    """Tell whether an address is one of this host's: only those can be bound. No packet is sent."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True


def says_loopback(host: str) -> bool:
    """Tell whether *host*, a name or an address, is meant for ranks of one host alone."""
    return host == "localhost" or is_of_loopback(host)


def is_of_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def joined(host: str, port: int | str) -> str:
    """Return host and port as one text."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def address_towards(host: str) -> str:
    """Return this host's address on the way to *host*; nothing where there is no way but the loopback. No packet is sent."""
    try:
        addresses = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ""
    for family, _, _, _, address in addresses:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
                mine: str = probe.getsockname()[0]
        except OSError:
            continue
        if not is_of_loopback(mine):
            return mine
    return ""


def free_address(reached_by: Sequence[str], interface: str) -> str:
    """Return an address of this host and a port that is free now, for ranks of other hosts.

    It is that of the *interface*, where that is not empty; else the one on the way to the first of the hosts *reached_by* to which there is one;
    else the one of this host's name. Nothing where there is none. Raises StateError for an *interface* without an address.
    """
    names = (*reached_by, socket.gethostname())
    if interface:
        usable = [one for one in addresses_of_interface(interface) if not one.startswith("fe80:")]
        host = min(usable, key=lambda one: ":" in one, default="")  # one of IPv4, if it has any
    else:
        host = next((found for name in names if name and (found := address_towards(name))), "")
    if not host:
        return ""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return joined(host, probe.getsockname()[1])


def first_of_list(hosts: str) -> str:
    """Return the first of *hosts*, which are written as Slurm writes them: ``rack[1-2]node[03-10,12],login`` begins with rack1node03."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", hosts)
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first[0]) if first else ""


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
