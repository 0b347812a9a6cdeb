"""Names and addresses of hosts: which are this host's, which one others reach it at, and Slurm's lists of them."""

from __future__ import annotations

import fcntl
import re
import socket
import struct
from collections.abc import Sequence

from shim.errors import ArgumentError

__all__ = [
    "address_of_interface",
    "address_towards",
    "another_host",
    "first_of_list",
    "free_address",
    "joined",
    "several_may_meet_at",
]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SIOCGIFADDR = 0x8915  # of linux/sockios.h: the IPv4 address of an interface
_ANY_PORT = 9  # nothing is sent to it


def another_host(source: str, host: str) -> str:
    """Return what shows that *host*, which *source* gave, is not this host; nothing where it is. Raises ArgumentError if no host has the name."""
    if host in _LOOPBACK or host == socket.gethostname():
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
    if away or not secret or host in _LOOPBACK or _is_loopback(host):
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


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def joined(host: str, port: int | str) -> str:
    """Return host and port as one text."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def address_of_interface(name: str) -> str:
    """Return the IPv4 address of the network interface *name*. Raises ArgumentError, naming those that have one, where it has none."""
    address = _address_of(name)
    if address is None:
        there = [f"{other} ({found})" for _, other in socket.if_nameindex() if (found := _address_of(other))]
        raise ArgumentError(
            f"SHIM_INTERFACE must be a network interface of {socket.gethostname()} that has an address, got {name!r}\n"
            f"Those are: {', '.join(there)}."
        )
    return address


def _address_of(interface: str) -> str | None:
    name = interface.encode()
    if not 0 < len(name) < 16:  # as long as a name can be
        return None
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            answer = fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, struct.pack("256s", name))
    except OSError:
        return None
    return socket.inet_ntoa(answer[20:24])


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
        if not _is_loopback(mine):
            return mine
    return ""


def free_address(reached_by: Sequence[str], interface: str) -> str:
    """Return an address of this host and a port that is free now, for ranks of other hosts.

    It is that of the *interface*, where that is not empty; else the one on the way to the first of the hosts *reached_by* to which there is one;
    else the one of this host's name. Nothing where there is none. Raises ArgumentError for an *interface* without an address.
    """
    names = (*reached_by, socket.gethostname())
    if interface:
        host = address_of_interface(interface)
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
