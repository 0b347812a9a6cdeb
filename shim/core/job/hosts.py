"""Names and addresses of hosts: which are this host's, which one others reach it at, and Slurm's lists of them."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence

from shim.core.job.interfaces import addresses_of_interface
from shim.errors import ArgumentError

_ANY_PORT = 9  # nothing is sent to it


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
